"""`fairlead completion`: shell completion scripts."""

import argparse

from fairlead_cli.context import Call
from fairlead_cli.parser import completion_scripts, tree


def completion_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=sorted(completion_scripts.SHELLS), help="shell")


def completion(call: Call) -> None:
    """Prints a shell completion script: source <(fairlead completion bash)."""
    root = tree.read(call.options.parser)
    print(completion_scripts.SHELLS[call.options.shell](root), end="")
