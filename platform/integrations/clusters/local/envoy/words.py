"""What the files are rendered from: services with their shares, revisions with their addresses. Filled in by the
agent."""

from dataclasses import dataclass

from integrations.clusters.local.envoy.names import ClusterUse


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One replica's address; a draining one finishes what it has and gets nothing new."""

    http_port: int
    grpc_port: int
    draining: bool = False
    host: str = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class RevisionEndpoints:
    """A revision that Envoy shall have clusters for, with or without replicas in them.

    Attributes:
        mirrored: it gets, or once got, copies of requests, and has the clusters for them.
    """

    namespace: str
    revision: str
    endpoints: tuple[Endpoint, ...] = ()
    mirrored: bool = False

    @property
    def uses(self) -> tuple[ClusterUse, ...]:
        """Return which clusters it has."""
        return tuple(use for use in ClusterUse if self.mirrored or not use.is_mirror)


@dataclass(frozen=True, slots=True)
class Backend:
    """One revision of a service that has ready endpoints.

    Attributes:
        model_version: what a request asks for that goes to `/versions/N/`.
        share_percent: of requests that name no version; over a service's backends they sum to 100, or to 0.
        mirror_percent: share of the inference requests that name no version of which it gets a copy.
    """

    revision: str
    model_version: str
    share_percent: int
    mirror_percent: int = 0


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """How one service is reached; `starting` is said, as one sentence, to clients that nothing can serve now."""

    namespace: str
    service: str
    backends: tuple[Backend, ...]
    starting: str = ""

    @property
    def key(self) -> str:
        """Return what clients call the service in a path or in metadata."""
        return f"{self.namespace}/{self.service}"
