"""Observed state of a service and of its cluster, as drivers report it. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from integrations.clusters.base.desired import CompanionKind, HeaderMatch, Resources
from integrations.clusters.base.failures import Failure
from integrations.clusters.base.gpus import NodeGpus
from integrations.machine.limits import Limit


class ReplicaPhase(StrEnum):
    """Life cycle phase of a replica."""

    STARTING = "Starting"
    READY = "Ready"
    BACKING_OFF = "BackingOff"
    DRAINING = "Draining"


@dataclass(frozen=True, slots=True)
class ObservedReplica:
    """One running (or failing) replica.

    Attributes:
        restarts: restarts after it ended by itself; never falls while the replica exists.
        started_at: Unix seconds of the running process; None without one.
        metrics_url: URL of its Prometheus page; empty until it serves.
        message: why it is not ready, or how its last process ended; one sentence.
        restart_number: its revision's when it started.
        failure: its last one, kept after it serves again; None where it never failed.
        start_s: how long its running process took until it was ready; None while unknown.
        namespace: where it is; empty for the service's own.
    """

    name: str
    phase: ReplicaPhase
    restarts: int = 0
    started_at: float | None = None
    metrics_url: str = ""
    message: str = ""
    restart_number: int = 0
    failure: Failure | None = None
    start_s: float | None = None
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class ObservedScaling:
    """Scaling of a revision by a cluster's own autoscaler.

    Attributes:
        replicas: the number set by the autoscaler, which is at least what was desired.
        problem: why it does not follow the load at present; empty where it does.
    """

    replicas: int
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ObservedCompanion:
    """The replicas of a companion of a revision's predictor; `scaling` as a revision's."""

    replicas: tuple[ObservedReplica, ...] = ()
    scaling: ObservedScaling | None = None

    @property
    def ready_replicas(self) -> int:
        """Return how many replicas take requests."""
        return sum(replica.phase is ReplicaPhase.READY for replica in self.replicas)

    @property
    def message(self) -> str:
        """Return why one of them is not ready; empty where unknown."""
        return next((replica.message for replica in self.replicas if replica.message), "")


@dataclass(frozen=True, slots=True)
class ObservedRevision:
    """Observed state of a revision; its percents and `match` are what the gateway confirmed, not what was desired.

    Attributes:
        replicas: the predictor's.
        transformer, explainer: None without one.
        scaling: None where the cluster has no autoscaler for it, and its replicas are as many as were desired.
        message: why its share differs from the desired one, or why it cannot run; empty where all is as desired.
        gateway_since: Unix seconds at which the gateway's counters for this revision began; None while it has none.
        failure: why the cluster creates no replica of it; None where it does.
        pooled_as: `namespace.service@version`, as which its pool's replicas count its requests; `replicas` are those
            then. Empty where it has its own.
        pool: that pool, `namespace/name`.
        own: of one in a pool, its own replicas while the pool answers: those that start, or end.
        is_pool: its replicas answer for the services in the pool that it is of.
        slept_at: as of `DesiredRevision`, of its present replicas, or of its sleep.
        woken_at: Unix seconds when a request woke it from that sleep; None while it is asleep, or was not.
    """

    name: str
    weight_percent: int
    replicas: tuple[ObservedReplica, ...] = ()
    message: str = ""
    gateway_since: float | None = None
    mirror_percent: int = 0
    match: tuple[HeaderMatch, ...] = ()
    scaling: ObservedScaling | None = None
    transformer: ObservedCompanion | None = None
    failure: Failure | None = None
    explainer: ObservedCompanion | None = None
    pooled_as: str = ""
    pool: str = ""
    own: tuple[ObservedReplica, ...] = ()
    is_pool: bool = False
    slept_at: float | None = None
    woken_at: float | None = None

    @property
    def own_replicas(self) -> tuple[ObservedReplica, ...]:
        """Return its replicas, without a pool's, which serve other services, too."""
        return self.own if self.pooled_as else self.replicas

    @property
    def companions(self) -> Mapping[CompanionKind, ObservedCompanion]:
        """Return its companions by kind."""
        found = {CompanionKind.TRANSFORMER: self.transformer, CompanionKind.EXPLAINER: self.explainer}
        return {kind: its for kind, its in found.items() if its is not None}

    @property
    def ready_replicas(self) -> int:
        """Return how many replicas take requests; 0 where one of its companions does not."""
        if not all(its.ready_replicas for its in self.companions.values()):
            return 0
        return sum(replica.phase is ReplicaPhase.READY for replica in self.replicas)

    @property
    def companion_message(self) -> str:
        """Return why a companion is not ready, such as `its transformer: no such image`; empty where unknown."""
        return next((f"its {kind}: {its.message}" for kind, its in self.companions.items() if its.message), "")

    @property
    def all_replicas(self) -> tuple[ObservedReplica, ...]:
        """Return its replicas and those of its companions."""
        return (*self.replicas, *(replica for its in self.companions.values() for replica in its.replicas))

    @property
    def last_failure(self) -> Failure | None:
        """Return the newest failure of the revision, its replicas and those of its companions."""
        found = [self.failure, *(replica.failure for replica in self.all_replicas)]
        return max((each for each in found if each is not None), key=lambda each: each.at, default=None)


@dataclass(frozen=True, slots=True)
class Observed:
    """A service as the cluster reports it; `generation` is the last one the cluster took up, 0 if none.

    Attributes:
        preview: the confirmed revision at the preview address; empty if none.
        gateway_counts: whether the gateway counts each revision's requests; where it does not, replicas' counts replace
            them.
    """

    namespace: str
    service: str
    generation: int = 0
    revisions: tuple[ObservedRevision, ...] = ()
    gateway_stats_url: str = ""
    message: str = ""
    preview: str = ""
    gateway_counts: bool = True

    def revision(self, name: str) -> ObservedRevision | None:
        """Return the named revision; None where the cluster has none."""
        return next((revision for revision in self.revisions if revision.name == name), None)


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the cluster that is not a model, such as the gateway, and how often it was restarted."""

    name: str
    ready: bool
    restarts: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class Node:
    """Free capacity of one node by its pods' requests; negative where it is overcommitted.

    Attributes:
        closed: why it accepts no pods of services, such as `is cordoned`; empty where it does.
    """

    name: str
    cpu_cores: float
    memory_bytes: int
    pods: int
    closed: str = ""


@dataclass(frozen=True, slots=True)
class Nodes:
    """Components and capacity of the cluster.

    Attributes:
        nodes: where pods run; empty where they were not requested.
        waiting: number of unscheduled pods.
        gpus: of the nodes with GPUs.
        defaults: requests of a replica whose revision does not set them.
        beside: requests of each pod beyond the model's container, for its other containers.
        unknown: why nodes are unknown; empty where they are known.
        limits: of the machine that the cluster is; empty for a cluster of several.
    """

    components: tuple[Component, ...] = ()
    nodes: tuple[Node, ...] = ()
    waiting: int = 0
    gpus: tuple[NodeGpus, ...] = ()
    defaults: Resources = field(default_factory=Resources)
    unknown: str = "nodes were not looked at"
    beside: Resources = field(default_factory=Resources)
    limits: tuple[Limit, ...] = ()
