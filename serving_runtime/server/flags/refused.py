"""Unsupported flags of Triton's; each is refused by name, with the reason."""

import argparse
from typing import Any, NoReturn

REFUSED = {
    "--http-thread-count": "one event loop serves all HTTP connections; run more replicas for more cores",
    "--grpc-infer-thread-count": "one event loop serves all gRPC calls; run more replicas for more cores",
    "--grpc-infer-allocation-pool-size": "messages are not pooled",
    "--grpc-max-response-pool-size": "messages are not pooled; a stream holds at most 4 MiB of unread answers",
    "--buffer-manager-thread-count": "tensors are copied once, by the thread that runs the batch",
    "--pinned-memory-pool-byte-size": "models run on the CPU, which needs no pinned memory",
    "--cuda-memory-pool-byte-size": "models run on the CPU",
    "--cuda-virtual-address-size": "models run on the CPU",
    "--min-supported-compute-capability": "models run on the CPU",
    "--model-load-gpu-limit": "models run on the CPU",
    "--enable-peer-access": "models run on the CPU",
    "--host-policy": "instances are not bound to cores; bind the whole process, as by taskset or numactl",
    "--cache-directory": "the cache is built in, there is nothing to load",
    "--response-cache-byte-size": "use --cache-config local,size=BYTES",
    "--strict-model-config": "use --disable-auto-complete-config",
    "--repoagent-directory": "the checksum agent is built in, there is nothing to load",
    "--model-namespacing": "a model's name must be in one repository only",
    "--trace-file": "use --trace-config triton,file=PATH",
    "--trace-level": "use --trace-config level=TIMESTAMPS",
    "--trace-rate": "use --trace-config rate=N",
    "--trace-count": "use --trace-config count=N",
    "--trace-log-frequency": "use --trace-config triton,log-frequency=N",
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
    """Exits with the reason."""

    def __call__(self, parser: argparse.ArgumentParser, _namespace: Any, _values: Any, flag: Any = None) -> NoReturn:
        parser.error(f"{flag} is not supported: {REFUSED[flag]}")


def add(parser: argparse.ArgumentParser) -> None:
    """Have the parser refuse each of the flags; they are not in its help."""
    for flag in REFUSED:
        parser.add_argument(flag, action=_Refuse, nargs="?", dest=argparse.SUPPRESS, help=argparse.SUPPRESS)
