"""Turn: one pass of the reconciler over one service, and its participants.

A turn has the service as it was read, its policy parsed once, what its cluster reports, and what each participant found
outside of any transaction. A participant is one thing that every pass does, such as the analysis or the autoscaling: it
collects, then records what it found under the service's row lock, and says whether it has more to do.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from clusters.domain.unseen import PLANNED, stored, unseen
from deployments.domain.rollout import RolloutState
from deployments.domain.service_state.service_lifecycle import is_confirmed
from deployments.domain.waits.service import Condition
from deployments.models import InferenceService, Rollout
from deployments.reconcile.memory import Memory
from deployments.reconcile.participants.metric_queries import Ask, no_prometheus
from deployments.reconcile.service_change import Change
from integrations.clusters.base import ClusterDriver, Observed, Sample

Metrics = Callable[[Observed], Sequence[Sample]]
Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Outside:
    """The external dependencies of a tick.

    Attributes:
        metrics: reads the counters of observed replicas (`integrations.metrics.counters.collect`).
        clock: the time now, with time zone.
        scale_down_window: how long fewer replicas must have sufficed before some are stopped.
        ask: sends queries to Prometheus (`integrations.metrics.prometheus`).
        memory: of services that this process had turns to; None reads all in each turn.
    """

    driver: ClusterDriver
    metrics: Metrics
    clock: Callable[[], datetime]
    scale_down_window: timedelta = timedelta(minutes=5)
    ask: Ask = no_prometheus
    memory: Memory | None = None


class Participant(ABC, Generic[Found]):
    """A part of every turn of the reconciler."""

    @abstractmethod
    def collect(self, turn: "Turn") -> Found:
        """Return what is to be recorded. No transaction is open: this may ask clusters and take its time."""

    @abstractmethod
    def record(self, change: Change, found: Found) -> None:
        """Record what was found, in the turn's transaction: no input or output but the database's."""

    def unsettled(self, change: Change) -> bool:  # noqa: ARG002 - most have nothing to do by themselves
        """Return whether the next sweep has to turn to the service for it, after the change was recorded."""
        return False


@dataclass
class Turn:
    """One pass over one service.

    Attributes:
        read: the service, its revisions and its rollout as they were read.
        seen: the cluster's observation; None where it cannot be read, and `problem` says why.
        state: the state of the rollout in progress, with its policy, as it was read; None without one.
        is_confirmed: the gateway does as was desired when the turn began.
        unseen: how long the reconciler could not see the service; zero while its cluster is observed as planned.
        kept: what participants keep for the next turn, where that finds the rows as this one leaves them.
    """

    read: Change
    outside: Outside
    seen: Observed | None
    problem: str = ""
    kept: dict[Participant[Any], Any] = field(default_factory=dict)
    state: RolloutState | None = field(init=False)
    is_confirmed: bool = field(init=False)
    unseen: timedelta = field(init=False)
    _samples: Sequence[Sample] | None = None
    _found: dict[Participant[Any], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.state = None if self.rollout is None else self.read.rollout_state(self.rollout)
        self.is_confirmed = self.seen is not None and is_confirmed(self.read.desired(), self.seen)
        self.unseen = _unseen(self.service, self.rollout, self.now)

    @property
    def service(self) -> InferenceService:
        """Return the service."""
        return self.read.service

    @property
    def now(self) -> datetime:
        """Return when the turn began."""
        return self.read.now

    @property
    def rollout(self) -> Rollout | None:
        """Return the rollout in progress when the turn began."""
        return self.read.rollout

    def samples(self) -> Sequence[Sample]:
        """Return the counters of the observed replicas, read once; raises Unavailable."""
        if self._samples is None:
            self._samples = () if self.seen is None else self.outside.metrics(self.seen)
        return self._samples

    def collect(self, participants: Iterable[Participant[Any]]) -> None:
        """Let each participant collect, in order."""
        for participant in participants:
            self._found[participant] = participant.collect(self)

    def found(self, participant: Participant[Found]) -> Found:
        """Return what a participant before the present one collected."""
        found: Found = self._found[participant]
        return found


def _unseen(service: InferenceService, rollout: Rollout | None, now: datetime) -> timedelta:
    """Return how long the reconciler could not see the service.

    The time before a rollout began does not count: settled services have fewer ticks.
    """
    since = service.seen_at or now
    since = since if rollout is None else max(since, rollout.attempt_started_at)
    if now - since <= PLANNED:
        return timedelta(0)
    if service.standing == Condition.CLUSTER_UNAVAILABLE:
        return unseen((), observed_at=None, since=since, now=now)  # turns since then could not see it
    cluster = service.cluster
    return unseen(stored(cluster.unseen), observed_at=cluster.observed_at, since=since, now=now)
