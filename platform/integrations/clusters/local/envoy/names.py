"""Names of Envoy clusters: several per revision, so that their counters separate kinds of requests."""

from enum import StrEnum


class ClusterUse(StrEnum):
    """Use of one of a revision's clusters.

    INFER is HTTP/1 inference. META is HTTP/1 health and metadata, kept apart since its errors are no inference errors.
    GRPC is everything over HTTP/2; Envoy counts gRPC by method, so one is enough. MIRROR_INFER and MIRROR_GRPC are
    copies of requests whose answers are dropped: separate from all that clients see, with their own limits.
    """

    INFER = "http"
    META = "meta"
    GRPC = "grpc"
    MIRROR_INFER = "mirror-http"
    MIRROR_GRPC = "mirror-grpc"

    @property
    def is_mirror(self) -> bool:
        """Return whether it carries copies."""
        return self in (ClusterUse.MIRROR_INFER, ClusterUse.MIRROR_GRPC)

    @property
    def is_grpc(self) -> bool:
        """Return whether it speaks HTTP/2 to the runtime's gRPC port."""
        return self in (ClusterUse.GRPC, ClusterUse.MIRROR_GRPC)


def cluster_name(namespace: str, revision: str, use: ClusterUse, slept_at: float = 0.0) -> str:
    """Return the name; it has no dots or colons, which Envoy's statistics would split or rewrite.

    Args:
        slept_at: as of `DesiredRevision`; 0 where it never was asleep. After each sleep the names are others: Envoy
            does not request a cluster again that it has seen removed.
    """
    return f"{namespace}/{revision}/{use.value}{_slept(slept_at)}"


def is_of(name: str, namespace: str, revision: str, slept_at: float) -> bool:
    """Return whether it is the name of a cluster of the revision after this sleep."""
    return any(name == cluster_name(namespace, revision, use, slept_at) for use in ClusterUse)


def _slept(slept_at: float) -> str:
    return f"~{round(slept_at * 1000)}" if slept_at else ""
