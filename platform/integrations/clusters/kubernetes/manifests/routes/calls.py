"""Calls that routes let through: inference, and what only reads. Pure.

A rule with a prefix lets through what is below it; the runtime refuses control calls among that (`restrictions.py`),
with which every pod is started. gRPC methods are named one by one.
"""

from dataclasses import dataclass
from typing import NamedTuple

GRPC_INFERENCE = "inference.GRPCInferenceService"
GRPC_INFER = (GRPC_INFERENCE, "ModelInfer")
GRPC_OTHERS = (
    (GRPC_INFERENCE, "ModelStreamInfer"),
    (GRPC_INFERENCE, "ServerLive"),
    (GRPC_INFERENCE, "ServerReady"),
    (GRPC_INFERENCE, "ServerMetadata"),
    (GRPC_INFERENCE, "ModelReady"),
    (GRPC_INFERENCE, "ModelMetadata"),
    (GRPC_INFERENCE, "ModelConfig"),
    (GRPC_INFERENCE, "ModelStatistics"),
    ("grpc.health.v1.Health", "Check"),
    ("grpc.health.v1.Health", "Watch"),
)
_INFER = ("infer", "generate", "generate_stream")
_READ = ("GET", "HEAD")


class Path(NamedTuple):
    """Path of a match, without the prefix of a service.

    Attributes:
        method: empty for any.
        is_exact: the whole path; else it, and all below it.
    """

    value: str
    method: str = ""
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Calls:
    """Paths of calls, those of inference apart: only these are copied to shadows.

    Attributes:
        explain: whole paths that go to explainers where a revision has one; each wins over a prefix that includes it.
    """

    infer: tuple[Path, ...]
    reads: tuple[Path, ...] = ()
    explain: tuple[Path, ...] = ()


def of_service(model: str) -> Calls:
    """Return all calls of a service, those that name a version included.

    `:predict` is the end of a segment, so V1 has one prefix for all of its calls.
    """
    infer = (Path(f"/v2/models/{model}", "POST"), Path("/v1/models"))
    return Calls(infer, tuple(Path("/v2", method) for method in _READ), _explain(model))


def of_version(model: str, version: str) -> Calls:
    """Return the calls that name a version."""
    v1 = f"/v1/models/{model}/versions/{version}"
    v2 = Path(f"/v2/models/{model}/versions/{version}")
    return Calls((v2, Path(f"{v1}:predict", "POST", is_exact=True), Path(v1)))


def of_group(model: str) -> Calls:
    """Return the calls of a model that name no version, each by its whole path.

    A rule that replaces a prefix has exactly one match (HTTPRouteRule), and one for a group has one for each of its
    alternatives.
    """
    v2, v1 = f"/v2/models/{model}", f"/v1/models/{model}"
    infer = (*(f"{v2}/{call}" for call in _INFER), f"{v1}:predict")
    reads = (v2, f"{v2}/ready", f"{v2}/config", f"{v2}/stats", v1)
    return Calls(
        tuple(Path(path, "POST", is_exact=True) for path in infer),
        tuple(Path(path, method, is_exact=True) for path in reads for method in _READ),
        _explain(model),
    )


def _explain(model: str) -> tuple[Path, ...]:
    paths = (f"/v1/models/{model}:explain", f"/v2/models/{model}/explain")
    return tuple(Path(path, "POST", is_exact=True) for path in paths)
