"""Access groups of gRPC calls, and metadata forwarded to models (Triton: limit endpoint access, parameters)."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from serving_runtime.common.request import InferRequest
from serving_runtime.protocol.tensors.parameters import Forwarding

HEADER_PREFIX = "triton-grpc-protocol-"
"""Prefix of the metadata that opens a restricted group."""

GROUPS = {
    "Check": "health",
    "Watch": "health",
    "ServerLive": "health",
    "ServerReady": "health",
    "ModelReady": "health",
    "ServerMetadata": "metadata",
    "ServerReflectionInfo": "metadata",
    "ModelMetadata": "metadata",
    "ModelInfer": "inference",
    "ModelStreamInfer": "inference",
    "ModelConfig": "model-config",
    "ModelStatistics": "statistics",
    "RepositoryIndex": "model-repository",
    "RepositoryModelLoad": "model-repository",
    "RepositoryModelUnload": "model-repository",
    "SystemSharedMemoryStatus": "shared-memory",
    "SystemSharedMemoryRegister": "shared-memory",
    "SystemSharedMemoryUnregister": "shared-memory",
    "CudaSharedMemoryStatus": "shared-memory",
    "CudaSharedMemoryRegister": "shared-memory",
    "CudaSharedMemoryUnregister": "shared-memory",
    "TraceSetting": "trace",
    "LogSettings": "logging",
}
"""By method: its group in --grpc-restricted-protocol."""

Sent = Sequence[tuple[str, str | bytes]]

FORWARDED: ContextVar[Mapping[str, str]] = ContextVar("FORWARDED")
"""Metadata of the gRPC call whose coroutine runs, as request parameters; not set without forwarding."""


def forwarded(metadata: Sent, forwarding: Forwarding) -> dict[str, str]:
    """Return the metadata that becomes request parameters; keys are in lower case, binary values are left out."""
    return {key: value for key, value in metadata if isinstance(value, str) and forwarding.takes(key)}


def with_metadata(request: InferRequest) -> InferRequest:
    """Return the request with the call's forwarded metadata as parameters, over those of the same name."""
    found = FORWARDED.get(None)
    return request._replace(parameters={**request.parameters, **found}) if found else request
