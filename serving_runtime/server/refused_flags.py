"""Flags of Triton's that this server does not have; each is refused by name, with the reason."""

import argparse
from typing import Any, NoReturn

REFUSED = {
    "--http-thread-count": "one event loop serves all HTTP connections; run more replicas for more cores",
    "--allow-sagemaker": "there is no SageMaker endpoint",
    "--sagemaker-port": "there is no SageMaker endpoint",
    "--sagemaker-safe-port-range": "there is no SageMaker endpoint",
    "--sagemaker-thread-count": "there is no SageMaker endpoint",
    "--allow-vertex-ai": "there is no Vertex AI endpoint",
    "--vertex-ai-port": "there is no Vertex AI endpoint",
    "--vertex-ai-thread-count": "there is no Vertex AI endpoint",
    "--vertex-ai-default-model": "there is no Vertex AI endpoint",
}


class _Refuse(argparse.Action):
    """Ends the command line with the reason."""

    def __call__(self, parser: argparse.ArgumentParser, _namespace: Any, _values: Any, flag: Any = None) -> NoReturn:
        parser.error(f"{flag} is not supported: {REFUSED[flag]}")


def add(parser: argparse.ArgumentParser) -> None:
    """Have the parser refuse each of the flags; they are not in its help."""
    for flag in REFUSED:
        parser.add_argument(flag, action=_Refuse, nargs="?", dest=argparse.SUPPRESS, help=argparse.SUPPRESS)
