"""Views of services, rollouts and events for the API and the pages, as values. Pure; made by the selectors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common.files.plans import Outcome
from deployments.domain.analysis.forecast import StepPlan
from deployments.domain.analysis.verdict import Measurement
from deployments.domain.phases import ServicePhase
from deployments.domain.policy import stored_match
from deployments.domain.rollout import Portion
from deployments.domain.service_state.contract import Contract
from deployments.domain.waits import Wait
from deployments.views.approvals import NO_APPROVALS, ApprovalsView
from integrations.clusters.base import Desired
from placement.capacity_check import Room


@dataclass(frozen=True, slots=True)
class ReasonView:
    """The reason of a rollout's phase."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the rollout's policy; `analysis` is None without a gate.

    Attributes:
        weight: percent of clients' requests; 0 where it gets only copies, or only a group's requests.
        mirror: percent of clients' requests that are copied to it; 0 where it gets requests themselves.
        match: the group whose requests it gets, as the policy file has it.
    """

    weight: int
    hold_seconds: float
    pause: bool
    analysis: dict[str, object] | None
    approval: dict[str, object] | None = None
    mirror: int = 0
    match: tuple[dict[str, object], ...] = ()
    webhooks: tuple[dict[str, object], ...] = ()

    @property
    def portion(self) -> Portion:
        """Return the portion of the step."""
        return Portion(self.weight, self.mirror, stored_match(self.match))


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A webhook of a step, and its answer.

    Attributes:
        when: before or after.
        answer: go, wait, no or unavailable; a person who promotes over an undecided one makes it go.
        tries: the number of calls.
        is_open: it will be called again.
    """

    name: str
    when: str
    attempt: int
    step_index: int
    answer: str
    message: str
    tries: int
    is_open: bool
    answered_at: datetime | None
    deadline_at: datetime


@dataclass(frozen=True, slots=True)
class RequestsView:
    """Requests the gateway sent to each side."""

    canary: int
    stable: int


@dataclass(frozen=True, slots=True)
class AnalysisRunView:
    """The counts and the verdict of one step, or of the background of all.

    Attributes:
        step_index: None in the background.
        weight_percent, mirror_percent: the step's percent of clients' requests, and of copies of them.
        has_gate: whether that step has a gate; without one, the verdict says only that it may pass.
        seen_percent: the canary's share of requests, or the part of them that was copied to the shadow; None without
            any.
    """

    step_index: int | None
    attempt: int
    weight_percent: int
    verdict: str
    message: str
    started_at: datetime
    finished_at: datetime | None
    requests: RequestsView
    seen_percent: float | None
    measurements: tuple[Measurement, ...]
    has_gate: bool = True
    mirror_percent: int = 0


@dataclass(frozen=True, slots=True)
class RolloutView:
    """A rollout as the API shows it; `steps` and `analysis_runs` are complete.

    Attributes:
        weight_wanted, weight_actual: percent of clients' requests for the new revision.
        mirror_wanted, mirror_actual: percent of clients' requests that are copied to it.
        match_wanted, match_actual: the group whose requests it gets, as the policy file has it; empty without one.
        session_affinity: the session key of clients' requests, as the policy file has it; None without one.
        weight_seen_percent, seen_requests: the share seen in the present step, and of how many requests of clients.
        analysis: the gate in the background of all steps, as the policy file has it; None without one.
        confirmed_at: since when the gateway sends the present step's portion, from which its hold counts; None before.
        deadline_at: when its time is up, and what happens then (`on_deadline`); None where it has no end.
        then: what follows a shadow's last step: pause, promote or end; None for another strategy.
        waits: why it waits; None once it is over.
        approvals: the approvals given and required.
        contract: its changes for clients; None for a rollback.
        webhooks: the external systems called, and their answers, those of the present step last.
    """

    id: int
    service: str
    from_revision: str
    to_revision: str
    from_version: int
    to_version: int
    policy: str | None
    strategy: str
    phase: str
    attempt: int
    step_index: int
    steps: tuple[StepView, ...]
    weight_wanted: int
    weight_actual: int
    weight_seen_percent: float | None
    seen_requests: int
    reason: ReasonView
    verdict: str
    analysis_runs: tuple[AnalysisRunView, ...]
    started_at: datetime
    finished_at: datetime | None
    created_by: str
    mirror_wanted: int = 0
    mirror_actual: int = 0
    match_wanted: tuple[dict[str, object], ...] = ()
    match_actual: tuple[dict[str, object], ...] = ()
    session_affinity: dict[str, object] | None = None
    analysis: dict[str, object] | None = None
    confirmed_at: datetime | None = None
    deadline_at: datetime | None = None
    on_deadline: str | None = None
    then: str | None = None
    waits: Wait | None = None
    approvals: ApprovalsView = NO_APPROVALS
    contract: Contract | None = None
    webhooks: tuple[QuestionView, ...] = ()

    @property
    def portion(self) -> Portion:
        """Return the desired portion of the new revision now."""
        return Portion(self.weight_wanted, self.mirror_wanted, stored_match(self.match_wanted))


@dataclass(frozen=True, slots=True)
class SiblingView:
    """A rollout of a service in one line, beside others of it."""

    id: int
    from_version: int
    to_version: int
    phase: str
    started_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class TargetView:
    """Scrape addresses for Prometheus, and the labels it adds."""

    targets: tuple[str, ...]
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class FailureEventView:
    """A cluster's event of a failed replica, which occurred `count` times, last at `at`."""

    at: datetime
    reason: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class FailureView:
    """A revision's last failure, kept also after a recovery.

    Attributes:
        reason: `integrations.clusters.base.FailureReason`.
        exit_code: of the process that ended; None where none did.
        replica, container: what failed; the container is empty on a cluster whose replicas have no parts.
        log: the last lines of what failed.
        is_final: a retry cannot help: the model, or its part of the service file, has to change.
    """

    reason: str
    message: str
    at: datetime
    exit_code: int | None
    replica: str
    container: str
    events: tuple[FailureEventView, ...]
    log: tuple[str, ...]
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class ModelStatusView:
    """The status of a service's models, in the words of KServe's `status.modelStatus`."""

    transition_status: str
    active_model_state: str
    target_model_state: str
    last_failure: FailureView | None


@dataclass(frozen=True, slots=True)
class PlacementView:
    """The GPU, or slice of one, of each replica of a revision.

    Attributes:
        asked: the file's request: an extended resource, or `auto`.
        resource: the pods' request.
        products: labels `nvidia.com/gpu.product` of the nodes to which they are bound; empty where any will do.
        why: the reason of the choice; empty where unknown.
    """

    asked: str
    resource: str
    products: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A revision and its present state.

    Attributes:
        role: stable, canary, shadow, retiring, retired or failed.
        replicas_wanted: the desired number now; 0 for a stopped service, and for a revision that no longer serves.
        replicas_least, replicas_most: the range in which `replicas_wanted` follows the load.
        scaling: the present and the target load, as text; empty where the number is fixed.
        replicas_to_restart: how many replicas still wait for a requested restart.
        model_state: Pending, Standby, Loading, Loaded or FailedToLoad.
        is_failing: whether `last_failure` keeps a replica from serving now.
        placement: None without a GPU.
        egress: whether its model may open connections to the network.
        template_changes: how its pinned pod template differs from that of a new revision; empty where it does not.
        image, protocol: of a custom predictor, whose model version represents the image; empty for a model.
        pool: the model pool whose replicas serve it; empty where it has its own.
        pool_memory_bytes: of a model pool, the memory that the models of a replica may take; None for a service.
        asleep_since: since when it has no replicas and wakes with the first request; None where it does not sleep.
        asleep_hours: replica hours that scaling to zero saved so far.
        asleep_saved: what these hours would have cost, in `currency`, at today's price; None where no price is set.
        start_seconds: how long its last replica took to start; None where unknown, or it never sleeps.
    """

    name: str
    number: int
    model: str
    model_version: int
    role: str
    replicas_wanted: int
    replicas_ready: int
    restarts: int
    weight_wanted: int
    weight_actual: int
    message: str
    created_at: datetime
    mirror_wanted: int = 0
    mirror_actual: int = 0
    replicas_to_restart: int = 0
    replicas_least: int = 1
    replicas_most: int = 1
    scaling: str = ""
    model_state: str = "Pending"
    is_failing: bool = False
    last_failure: FailureView | None = None
    placement: PlacementView | None = None
    egress: bool = False
    template_changes: str = ""
    image: str = ""
    protocol: str = ""
    pool: str = ""
    pool_memory_bytes: int | None = None
    asleep_since: datetime | None = None
    asleep_hours: float = 0.0
    asleep_saved: float | None = None
    currency: str = ""
    start_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class ImportView:
    """The import that a service waits for: its source, its progress, and whether it failed."""

    id: int
    model: str
    uri: str
    note: str
    ended_badly: bool


@dataclass(frozen=True, slots=True)
class FileView:
    """Whether the content of the service's file is live; `message` names what is live instead, and why."""

    is_live: bool
    message: str


@dataclass(frozen=True, slots=True)
class DriftView:
    """A change made by hand on the cluster, in one sentence and part by part (`integrations.clusters.base.Drift`).

    Attributes:
        changed_at: when the manager wrote last; None where unknown.
        since: when it was found first.
        times: how often it was reverted; 1 where it is left.
    """

    message: str
    object: str
    path: str
    wanted: str
    found: str
    manager: str
    changed_at: datetime | None
    since: datetime
    healed: bool
    times: int


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service with its running revisions and its newest rollout; `preview_url` is set in a blue/green rollout.

    `leaving_urls` are those at Gateways that its namespace is leaving. `is_by_host`: it answers at a host of its
    own, by which gRPC finds it too.

    `model_version` is None while the first is imported, with the progress in `import_state`. `waits` is why it waits,
    also for its rollout; None where it does not. `drift` lists changes made by hand on its cluster. `access` is who may
    call it, `limits` are of its requests, and `objectives` those of its service level, all as a service file has them;
    `cors_origins` are the web pages that may call it from a browser. `follows` names the object of a cluster that says
    what it is; empty where API and pages do.
    """

    id: int
    namespace: str
    name: str
    cluster: str
    url: str
    phase: str
    reason: str
    model: str
    model_version: int | None
    policy: str | None
    stable_revision: str | None
    revisions: tuple[RevisionView, ...]
    rollout: RolloutView | None
    event_seq: int
    changes: int
    created_at: datetime
    file: FileView
    model_status: ModelStatusView
    preview_url: str | None = None
    leaving_urls: tuple[str, ...] = ()
    is_by_host: bool = False
    import_state: ImportView | None = None
    waits: Wait | None = None
    drift_policy: str = "heal"
    drift: tuple[DriftView, ...] = ()
    access: Any = "public"
    cors_origins: tuple[str, ...] = ()
    limits: Mapping[str, Any] = field(default_factory=dict)
    objectives: Mapping[str, Any] = field(default_factory=dict)
    follows: str = ""

    @property
    def is_waking(self) -> bool:
        """Return whether it scaled to zero, and requests wait for its first replica."""
        live = self.live
        if live is None or live.pool or self.phase != ServicePhase.READY:
            return False
        return bool(live.asleep_hours and live.replicas_wanted and not live.replicas_ready)

    @property
    def live(self) -> RevisionView | None:
        """Return its stable revision; None without one."""
        return next((each for each in self.revisions if each.name == self.stable_revision), None)


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """The requests that a rollout's analysis needs to find the regression in each gate's `detect`.

    Attributes:
        traffic: the basis of the figures, in one sentence.
        requests_per_second: of all clients; None where unknown.
    """

    alpha: float
    traffic: str
    requests_per_second: float | None
    steps: tuple[StepPlan, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying a file or starting a rollout would do; `before` and `after` are the files, None without one.

    Attributes:
        contract: the changes for clients of the rollout that it starts; None without one.
        analysis: what the analysis of that rollout could find; None where not requested.
        desired_states: the desired states of the service's cluster from then to the rollout's end.
        room: whether that rollout fits on the cluster's nodes; None where not requested.
        patched: the effect of patches on the rendered manifests, as a unified diff; empty without patches.
        untried: why the cluster did not check them, in a sentence; empty where it did, or need not.
        warnings: regressions that the policy lets through, each a sentence.
    """

    outcome: Outcome
    message: str
    before: object
    after: object
    contract: Contract | None = None
    analysis: AnalysisPlan | None = None
    desired_states: tuple[Desired, ...] = ()
    room: Room | None = None
    patched: str = ""
    untried: str = ""
    warnings: tuple[str, ...] = ()
