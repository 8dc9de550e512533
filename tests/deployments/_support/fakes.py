"""The outside as the reconciler sees it, without processes: a cluster, its counters, a clock.

`test_driver_contract.py` runs the same tests on `FakeCluster` and on the real local driver with its agent.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from common.errors import InvalidInput, NotFound, Unavailable
from integrations.clusters.base import (
    Candidate,
    CompanionKind,
    Component,
    Desired,
    DesiredNode,
    DesiredRevision,
    Drift,
    Exchange,
    Failure,
    FailureReason,
    Job,
    JobIdentity,
    JobResult,
    Node,
    NodeGpus,
    Nodes,
    Observed,
    ObservedCompanion,
    ObservedNode,
    ObservedReplica,
    ObservedRevision,
    ObservedScaling,
    PodTemplates,
    ReadSecrets,
    ReplicaPhase,
    Sample,
    WorkloadIdentity,
)

FAILED_AT = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
EDGES = (1000.0, 10_000.0)


@dataclass
class ManualClock:
    """Stands still until it is told to go on."""

    now: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@dataclass
class FakeCluster:
    """Takes wishes at once and fulfils them when `settle` is called.

    Attributes:
        broken: revisions whose replicas never become ready, and what they end with.
        refused: those of them that can never start.
        woken: revisions that a request woke, and when.
        most_ready: of which revisions only so many replicas become ready.
        autoscaled: how many replicas the cluster's own autoscaler makes of a revision where that is more than desired.
        companions_autoscaled: the same of companions, by the names of their Deployments.
        away: why the cluster cannot be reached; empty while it can.
        has_policies: its gateway can check who calls.
        touched_at: when something of a service ran otherwise last, in Unix seconds.
        recorded: what taps wrote of each service, cursors are numbers of it.
        workloads: whose each token is; `asked_tokens` are those that it was asked about.
        brought: what replicas brought that their taps recorded.
        answers: what a version makes of a recorded exchange in a replay.
        replaying: the candidates that run.
        worked_on: nodes with GPUs as they are; `staying` are pods that no eviction moves, and why.
        templates: pod templates of revisions, which can be pinned once.
        changes: how their pinned templates differ from those of a new revision.
        on_apply: called before each apply, for what happens at the worst moment.
        on_templates: called before pod templates are read.
        on_check: called with what is to be foreseen; raises what the cluster cannot do.
    """

    desired: dict[tuple[str, str], Desired] = field(default_factory=dict)
    observed: dict[tuple[str, str], Observed] = field(default_factory=dict)
    broken: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    woken: dict[str, float] = field(default_factory=dict)
    most_ready: dict[str, int] = field(default_factory=dict)
    restarts: dict[str, int] = field(default_factory=dict)
    deleted: set[tuple[str, str]] = field(default_factory=set)
    components: tuple[Component, ...] = ()
    nodes: tuple[Node, ...] = ()
    gpus: tuple[NodeGpus, ...] = ()
    applied: list[Desired] = field(default_factory=list)
    secrets: dict[tuple[str, str], dict[str, dict[str, str]]] = field(default_factory=dict)
    recorded: dict[tuple[str, str], list[Exchange]] = field(default_factory=dict)
    answers: dict[str, Callable[[Exchange], Exchange]] = field(default_factory=dict)
    replaying: list[Candidate] = field(default_factory=list)
    autoscaled: dict[str, ObservedScaling] = field(default_factory=dict)
    workloads: dict[str, WorkloadIdentity | JobIdentity] = field(default_factory=dict)
    asked_tokens: list[str] = field(default_factory=list)
    companions_autoscaled: dict[str, ObservedScaling] = field(default_factory=dict)
    brought: list[tuple[WorkloadIdentity, bytes]] = field(default_factory=list)
    away: str = ""
    has_policies: bool = False
    touched_at: dict[tuple[str, str], float] = field(default_factory=dict)
    worked_on: dict[str, ObservedNode] = field(default_factory=dict)
    staying: dict[str, str] = field(default_factory=dict)
    drift: list[Drift] = field(default_factory=list)
    templates: dict[str, PodTemplates] = field(default_factory=dict)
    changes: dict[str, str] = field(default_factory=dict)
    on_apply: Callable[[Desired], None] = lambda _desired: None
    on_check: Callable[[Desired], None] = lambda _desired: None
    on_templates: Callable[[Desired], None] = lambda _desired: None
    before_secrets: Callable[[], None] = lambda: None

    def apply(self, desired: Desired) -> list[Drift]:
        self._reach()
        self.on_apply(desired)
        self.applied.append(desired)
        key = (desired.namespace, desired.service)
        if key not in self.desired or self.desired[key].generation <= desired.generation:
            self.desired[key] = desired
            self.deleted.discard(key)
        return self.drift

    def pod_templates(self, desired: Desired) -> dict[str, PodTemplates]:
        self._reach()
        self.on_templates(desired)
        asked = {each.name for each in desired.revisions if not each.pod_templates}
        return {name: each for name, each in self.templates.items() if name in asked}

    def template_changes(self, desired: Desired) -> dict[str, str]:
        pinned = {each.name for each in desired.revisions if each.pod_templates}
        return {name: self.changes.get(name, "") for name in pinned}

    def apply_secrets(self, namespace: str, service: str, read: ReadSecrets) -> None:
        self._reach()
        self.before_secrets()
        self.secrets[namespace, service] = {name: dict(each) for name, each in read().items()}

    def observe(self, namespace: str, service: str) -> Observed:
        self._reach()
        return self.observed.get((namespace, service), Observed(namespace, service))

    def touched(self, since: float) -> Collection[tuple[str, str]]:
        self._reach()
        return [key for key, at in self.touched_at.items() if at >= since]

    def metrics_page(self, namespace: str, replica: ObservedReplica) -> str:
        """Return a page without requests; the reconciler's tests have counters of their own."""
        self._reach()
        return "process_start_time_seconds 0\n"

    def log(self, namespace: str, service: str, replica: str) -> Sequence[str]:
        """Return a line that names the replica."""
        seen = self.observe(namespace, service)
        if all(replica != each.name for revision in seen.revisions for each in revision.replicas):
            raise NotFound(f"service {namespace}/{service} has no replica {replica!r} now")
        return (f"{replica} serves",)

    def exchanges(self, namespace: str, service: str, cursor: str) -> tuple[list[Exchange], str]:
        self._reach()
        found = self.recorded.get((namespace, service), [])
        return found[int(cursor or 0) :], str(len(found)) if found else cursor

    def inventory(self, *, with_nodes: bool = False) -> Nodes:
        self._reach()
        return Nodes(self.components, self.nodes, gpus=self.gpus, unknown="") if with_nodes else Nodes(self.components)

    def observe_node(self, name: str) -> ObservedNode | None:
        self._reach()
        return self.worked_on.get(name)

    def apply_node(self, desired: DesiredNode) -> list[str]:
        """Do at once what is asked for, but what only MIG manager does."""
        self._reach()
        node = self.worked_on[desired.name]
        pods = tuple(pod for pod in node.gpus.pods if pod.name not in desired.evicted or pod.name in self.staying)
        gpus = replace(node.gpus, pods=pods)
        if desired.config and desired.config != gpus.config:
            gpus = replace(gpus, config=desired.config, config_state="pending")
        configs = {**node.configs, **desired.configs}
        if desired.cordoned and not node.cordoned:
            node = replace(node, cordoned=True, mark=desired.mark)
        elif not desired.cordoned and node.mark == desired.mark:
            node = replace(node, cordoned=False, mark="")
        self.worked_on[desired.name] = replace(node, gpus=gpus, configs=configs)
        return [why for pod, why in self.staying.items() if pod in desired.evicted]

    def run(self, job: Job) -> JobResult:
        raise AssertionError("the reconciler runs no jobs")

    @contextmanager
    def replay(self, candidate: Candidate) -> Iterator[Callable[[Exchange], Exchange]]:
        """Answer with what was recorded, or as `answers` says for the candidate's version."""
        self._reach()
        if candidate.name in self.broken:
            raise InvalidInput(self.broken[candidate.name])
        self.replaying.append(candidate)
        answer = self.answers.get(candidate.model_version, lambda recorded: recorded)
        yield lambda recorded: replace(answer(recorded), revision=candidate.name)
        self.replaying.remove(candidate)

    def check_config(self, fields: Mapping[str, object]) -> None:
        raise AssertionError("the reconciler checks no files")

    def check(self, desired: Desired) -> None:
        self._reach()
        self.on_check(desired)

    def checks_callers(self, namespace: str) -> bool:
        self._reach()
        return self.has_policies

    def keep(self, workload: WorkloadIdentity, events: bytes) -> None:
        self._reach()
        self.brought.append((workload, events))

    def identify(self, token: str) -> WorkloadIdentity | JobIdentity | None:
        self._reach()
        self.asked_tokens.append(token)
        return self.workloads.get(token)

    def delete(self, namespace: str, service: str, generation: int) -> None:
        self._reach()
        key = (namespace, service)
        if key in self.desired and self.desired[key].generation <= generation:
            self.desired[key] = Desired(namespace, service, generation, ())
            self.deleted.add(key)

    def settle(self) -> None:
        """Make everything as it is wished: replicas run and are ready unless broken, and the gateway confirms."""
        for key, desired in list(self.desired.items()):
            if key in self.deleted:
                del self.desired[key]
                self.observed.pop(key, None)
            else:
                before, self.observed[key] = self.observed.get(key), self._fulfilled(desired)
                if self.observed[key] != before:
                    self.touched_at[key] = time.time()

    def crash(self, revision: str) -> None:
        """A replica of the revision ended by itself and was started again."""
        self.restarts[f"{revision}-0"] = self.restarts.get(f"{revision}-0", 0) + 1

    def weights(self, namespace: str = "default", service: str = "digits") -> dict[str, int]:
        """Return what the cluster was last asked to send where."""
        desired = self.desired[namespace, service]
        return {revision.name: revision.weight_percent for revision in desired.revisions}

    def copies(self, namespace: str = "default", service: str = "digits") -> dict[str, int]:
        """Return of what share of the requests the cluster was last asked to send copies where."""
        desired = self.desired[namespace, service]
        return {revision.name: revision.mirror_percent for revision in desired.revisions if revision.mirror_percent}

    def _fulfilled(self, desired: Desired) -> Observed:
        ready = {each.name for each in desired.revisions if self._is_able(each)}
        given = sum(each.weight_percent for each in desired.revisions if each.name in ready)
        return Observed(
            desired.namespace,
            desired.service,
            desired.generation,
            tuple(
                ObservedRevision(
                    name=each.name,
                    weight_percent=self._weight(each, given if each.name in ready else 0),
                    slept_at=each.slept_at,
                    woken_at=self._woken_at(each),
                    pool=each.pool,
                    pooled_as=f"{desired.namespace}.{each.name}" if each.pool and not each.own_replicas else "",
                    mirror_percent=each.mirror_percent if each.name in ready else 0,
                    match=each.match if each.name in ready else (),
                    scaling=self.autoscaled.get(each.name),
                    transformer=self._companion(each, CompanionKind.TRANSFORMER),
                    explainer=self._companion(each, CompanionKind.EXPLAINER),
                    replicas=tuple(
                        replace(
                            self._replica(each.name, index),
                            restart_number=0 if each.pool and not each.own_replicas else each.restart_number,
                        )
                        for index in range(each.own_replicas or each.replicas)
                    ),
                )
                for each in desired.revisions
            ),
            preview=desired.preview if desired.preview in ready else "",
        )

    def _weight(self, revision: DesiredRevision, given: int) -> int:
        if not given and revision.slept_at and revision.name not in self.broken:
            return revision.weight_percent  # its requests wait
        return round(100 * revision.weight_percent / given) if given else 0

    def _woken_at(self, revision: DesiredRevision) -> float | None:
        at = self.woken.get(revision.name)
        return at if at is not None and revision.slept_at is not None and at >= revision.slept_at else None

    def _is_able(self, revision: DesiredRevision) -> bool:
        names = {revision.name, *(f"{revision.name}-{kind}" for kind in revision.companions)}
        broken = (names - {f"{revision.name}-explainer"}) & self.broken.keys()
        return revision.replicas > 0 and not broken

    def _companion(self, revision: DesiredRevision, kind: CompanionKind) -> ObservedCompanion | None:
        its, name = revision.companions.get(kind), f"{revision.name}-{kind}"
        if its is None:
            return None
        replicas = [self._replica(name, index) for index in range(its.replicas)]
        return ObservedCompanion(tuple(replicas), self.companions_autoscaled.get(name))

    def _replica(self, revision: str, index: int) -> ObservedReplica:
        name = f"{revision}-{index}"
        message = self.broken.get(revision, "")
        phase = ReplicaPhase.BACKING_OFF if message else ReplicaPhase.READY
        if index >= self.most_ready.get(revision, index + 1):
            phase = ReplicaPhase.STARTING
        failure = None
        if message:
            log = ("loading", message)
            failure = Failure(FailureReason.MODEL_LOAD_FAILED, message, FAILED_AT, exit_code=1, replica=name, log=log)
            failure = replace(failure, is_final=revision in self.refused)
        return ObservedReplica(name, phase, self.restarts.get(name, 0), message=message, failure=failure, start_s=2.5)

    def _reach(self) -> None:
        if self.away:
            raise Unavailable(self.away)


@dataclass
class FakeMetrics:
    """Counters of the gateway and of one replica for each revision, which only `serve` moves.

    Attributes:
        in_flight: requests in flight in all replicas of a revision together, which they share alike.
    """

    samples: dict[tuple[str, str], Sample] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)
    away: str = ""
    asked: int = 0

    def __call__(self, observed: Observed) -> Sequence[Sample]:
        self.asked += 1
        if self.away:
            raise Unavailable(self.away)
        names = {revision.name for revision in observed.revisions}
        replicas = {(replica.name, each.name) for each in observed.revisions for replica in each.replicas}
        for name in names:
            self._sample("gateway", name)
            self._sample("mirror", name)
            self._sample(f"{name}-0", name)
        for revision in observed.revisions:
            for replica in revision.replicas:
                share = self.in_flight.get(revision.name, 0) // len(revision.replicas)
                known = self._sample(replica.name, revision.name)
                self.samples[replica.name, revision.name] = replace(known, in_flight=share)
        gone = [key for key in self.samples if key[1] in names and key[0] not in ("gateway", "mirror")]
        for key in set(gone) - replicas - {(f"{name}-0", name) for name in names}:
            del self.samples[key]
        return [sample for (_, revision), sample in self.samples.items() if revision in names]

    def serve(
        self, revision: str, requests: int, *, failed: int = 0, refused: int = 0, slow: int = 0, copies: bool = False
    ) -> None:
        """Let clients send requests to a revision, or the gateway copies of them."""
        source = "mirror" if copies else "gateway"
        gateway, replica = self._sample(source, revision), self._sample(f"{revision}-0", revision)
        self.samples[source, revision] = replace(
            gateway,
            requests=gateway.requests + requests,
            client_errors=gateway.client_errors + refused,
            server_errors=gateway.server_errors + failed,
        )
        fast, slower, slowest = replica.latency_counts
        counts = (fast + requests - slow, slower + slow, slowest)
        self.samples[f"{revision}-0", revision] = replace(
            replica, requests=replica.requests + requests, latency_counts=counts
        )

    def _sample(self, source: str, revision: str) -> Sample:
        edges, counts = ((), ()) if source in ("gateway", "mirror") else (EDGES, (0, 0, 0))
        return self.samples.setdefault((source, revision), Sample(source, revision, 1.0, 0, 0, 0, edges, counts))
