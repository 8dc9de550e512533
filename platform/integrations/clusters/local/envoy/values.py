"""What the files are rendered from: services with their shares, revisions with their addresses. Filled in by the
agent."""

from dataclasses import dataclass, replace

from integrations.clusters.base import PREVIEW_SUFFIX, HeaderMatch, SessionAffinity
from integrations.clusters.local.envoy.names import ClusterUse

Place = int | str
"""Where a replica listens: a port, or the path of a Unix socket."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One replica's places; a draining one finishes what it has and gets nothing new. `host` is of ports."""

    http: Place
    grpc: Place
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
        match: requests that name no version and match all of these are its own; empty gives it none but its share.
    """

    revision: str
    model_version: str
    share_percent: int
    mirror_percent: int = 0
    match: tuple[HeaderMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """How one service is reached.

    Attributes:
        unserved: said, as one sentence, to clients that nothing can serve now.
        preview: the revision that answers at the preview address; empty where there is none.
        model: what clients ask for, where that is not the service's name.
        affinity: by what requests that name no version belong together; None leaves each to chance.
        request_timeout_s: so long after its beginning an HTTP request is given up; 0 is never.
    """

    namespace: str
    service: str
    backends: tuple[Backend, ...]
    unserved: str = ""
    preview: str = ""
    model: str = ""
    affinity: SessionAffinity | None = None
    request_timeout_s: int = 0

    @property
    def key(self) -> str:
        """Return what clients call the service in a path or in metadata."""
        return f"{self.namespace}/{self.service}"

    def preview_route(self) -> "ServiceRoute":
        """Return how the preview is reached: as the service is, under another name, and only one revision answers."""
        chosen = (backend for backend in self.backends if backend.revision == self.preview)
        return ServiceRoute(
            self.namespace,
            f"{self.service}{PREVIEW_SUFFIX}",
            tuple(replace(backend, share_percent=100, mirror_percent=0, match=()) for backend in chosen),
            f"the preview of service {self.key} is starting: no replica of {self.preview} takes requests yet",
            model=self.service,
            request_timeout_s=self.request_timeout_s,
        )
