"""Input of the Envoy configuration: services with their shares, revisions with their addresses. Set by the agent."""

from dataclasses import dataclass, field, replace

from integrations.clusters.base import PREVIEW_SUFFIX, Access, Cors, HeaderMatch, Limits, SessionAffinity
from integrations.clusters.local.envoy.names import ClusterUse

Place = int | str
"""Address of a replica: a port, or the path of a Unix socket."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One replica's addresses; a draining one finishes its requests and gets no new ones. `host` is of ports.

    Attributes:
        name: of a pool's replica, by which requests are hashed to it; empty for others.
    """

    http: Place
    grpc: Place
    draining: bool = False
    host: str = "127.0.0.1"
    name: str = ""


@dataclass(frozen=True, slots=True)
class RevisionEndpoints:
    """A revision with clusters in Envoy, with or without replicas in them.

    Attributes:
        mirrored: it gets, or once got, copies of requests, and has the clusters for them.
        pooled: its endpoints are a pool's replicas, of which requests of one service go to the same.
        slept_at: as of `DesiredRevision`, when its first replica started; 0 where it never was asleep.
        why_failed: the error message for requests that waited for it, where its first replica after a sleep failed.
    """

    namespace: str
    revision: str
    endpoints: tuple[Endpoint, ...] = ()
    mirrored: bool = False
    pooled: bool = False
    slept_at: float = 0.0
    why_failed: str = ""

    @property
    def uses(self) -> tuple[ClusterUse, ...]:
        """Return the uses of its clusters."""
        return tuple(use for use in ClusterUse if self.mirrored or not use.is_mirror)


@dataclass(frozen=True, slots=True)
class RowsExceeded:
    """Who has used up a limit of rows a minute, and is refused until the minute ends.

    Attributes:
        services: as `ServiceRoute.key`, whose callers are all refused.
        callers: a service, and the key of one of its callers; empty for those without a key.
        keys, teams: of callers of any service.
    """

    services: tuple[str, ...] = ()
    callers: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    teams: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Backend:
    """One revision of a service that has ready endpoints.

    Attributes:
        model_version: N of requests to `/versions/N/`.
        share_percent: of requests that name no version; over a service's backends they sum to 100, or to 0.
        mirror_percent: share of the inference requests that name no version of which it gets a copy.
        match: requests that name no version and match all of these are its own; empty gives it its share only.
        replicas: among how many its requests are shared out; 1 where a pool's hash picks one.
        pooled: they are a pool's.
        pool: `namespace/name` of the pool whose clusters it uses, as at rest; empty where it has its own.
        copies: what is hashed of a request for each copy of its model in a pool, at random; empty for the service's
            name alone.
        slept_at: as of `RevisionEndpoints`.
        asleep: it has none, and its clusters are unknown to Envoy: requests wait there until one is ready.
    """

    revision: str
    model_version: str
    share_percent: int
    mirror_percent: int = 0
    match: tuple[HeaderMatch, ...] = ()
    replicas: int = 1
    pooled: bool = False
    slept_at: float = 0.0
    asleep: bool = False
    pool: str = ""
    copies: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceRoute:
    """Route of one service.

    Attributes:
        unserved: error message, one sentence, for clients that nothing can serve now.
        preview: the revision that answers at the preview address; empty without one.
        model: the model name in requests, where that is not the service's name.
        affinity: session affinity of requests that name no version; None assigns each at random.
        request_timeout_s: timeout of an HTTP request, from its beginning; 0 is never.
        access: who may call it; None for everybody.
        cors: which pages of other origins may call it from a browser; None for none.
        limits: of its requests; its preview has the same, counted separately.
        explains: a revision may answer explain requests.
        takes_feedback: clients may send labels for its answers; its preview takes none.
        waits_for_pool: it has no backend until a pool has loaded its model.
    """

    namespace: str
    service: str
    backends: tuple[Backend, ...]
    unserved: str = ""
    preview: str = ""
    model: str = ""
    affinity: SessionAffinity | None = None
    request_timeout_s: int = 0
    access: Access | None = None
    cors: Cors | None = None
    limits: Limits = field(default_factory=Limits)
    explains: bool = False
    takes_feedback: bool = False
    waits_for_pool: bool = False

    @property
    def key(self) -> str:
        """Return the service's name in a path or in metadata."""
        return f"{self.namespace}/{self.service}"

    @property
    def is_on_demand(self) -> bool:
        """Return whether its routes are sent once a request needs them.

        So it is with services at rest in pools, of which there are many, and before their models have loaded. Envoy
        reads whether a body has a limit before it has the routes.
        """
        return self.limits.request_bytes is None and (self.waits_for_pool or self.is_at_rest)

    @property
    def is_at_rest(self) -> bool:
        """Return whether one revision has all requests, by the clusters of its pool."""
        return any(backend.pool for backend in self.backends)

    @property
    def is_asleep(self) -> bool:
        """Return whether requests wait until a replica is ready."""
        return any(backend.asleep for backend in self.backends)

    @property
    def called(self) -> str:
        """Return the service's name in tokens; a preview is called by those who may call its service."""
        return f"{self.namespace}/{self.model or self.service}"

    def preview_route(self) -> "ServiceRoute":
        """Return the preview's route: as the service's, under another name, and only one revision answers."""
        chosen = (backend for backend in self.backends if backend.revision == self.preview)
        return ServiceRoute(
            self.namespace,
            f"{self.service}{PREVIEW_SUFFIX}",
            tuple(replace(backend, share_percent=100, mirror_percent=0, match=()) for backend in chosen),
            f"the preview of service {self.key} is starting: no replica of {self.preview} takes requests yet",
            model=self.service,
            request_timeout_s=self.request_timeout_s,
            access=self.access,
            cors=self.cors,
            limits=self.limits,
            explains=self.explains,
        )
