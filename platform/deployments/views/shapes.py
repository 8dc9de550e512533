"""What the API and the pages show of services, rollouts and events, as values. Pure; made by the selectors."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from deployments.domain.analysis.forecast import StepPlan
from deployments.domain.analysis.verdict import Measurement
from deployments.domain.policy import stored_match
from deployments.domain.rollout import Portion
from deployments.domain.service_state.contract import Contract
from deployments.domain.waits import Wait
from deployments.views.approvals import NO_APPROVALS, ApprovalsView
from integrations.clusters.base import Desired
from placement.capacity_check import Room


@dataclass(frozen=True, slots=True)
class ReasonView:
    """Why a rollout is where it is."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the rollout's policy; `analysis` is None without a gate.

    Attributes:
        weight: percent of clients' requests; 0 where it gets copies, or a group's requests alone.
        mirror: percent of clients' requests of which it gets a copy; 0 where it gets requests themselves.
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
        """Return what the step gives."""
        return Portion(self.weight, self.mirror, stored_match(self.match))


@dataclass(frozen=True, slots=True)
class QuestionView:
    """A webhook that was asked at a step, and what it said.

    Attributes:
        when: before or after.
        answer: go, wait, no or unavailable; a person who promotes over an undecided one makes it go.
        tries: how often it was asked.
        is_open: it is asked again.
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
    """What was counted and judged at one step, or in the background of all.

    Attributes:
        step_index: None in the background.
        weight_percent, mirror_percent: what the step gives of clients' requests, and of copies of them.
        has_gate: whether anything was judged at that step; where not, the verdict says only that it may pass.
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
        mirror_wanted, mirror_actual: percent of clients' requests of which it gets a copy.
        match_wanted, match_actual: the group whose requests it gets, as the policy file has it; empty without one.
        session_affinity: by what clients' requests belong together, as the policy file has it; None where by nothing.
        weight_seen_percent, seen_requests: the share seen in the present step, and of how many requests of clients.
        analysis: what holds in the background of all steps, as the policy file has it; None where nothing does.
        confirmed_at: since when the gateway sends what the present step gives, from which its hold counts; None before.
        deadline_at: when its time is up, and what happens then (`on_deadline`); None where it has no end.
        then: what follows a shadow's last step: pause, promote or end; None for another strategy.
        waits: why it waits; None once it is over.
        approvals: what was approved, and what is asked for.
        contract: what it changes for clients; None on the way back.
        webhooks: which systems outside were asked, and what they said, those of the present step last.
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
        """Return what the new revision is to get now."""
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
    """Addresses that a Prometheus scrapes, and what it adds to what it finds there."""

    targets: tuple[str, ...]
    labels: dict[str, str]


@dataclass(frozen=True, slots=True)
class FailureEventView:
    """What a cluster says happened to a replica that failed, `count` times, at last at `at`."""

    at: datetime
    reason: str
    message: str
    count: int


@dataclass(frozen=True, slots=True)
class FailureView:
    """A revision's last failure, also where it serves again by now.

    Attributes:
        reason: `integrations.clusters.base.FailureReason`.
        exit_code: of the process that ended; None where none did.
        replica, container: what failed; the container is empty on a cluster whose replicas have no parts.
        log: the last lines of what failed.
        is_final: trying again cannot help: the model, or what the service file says of it, has to change.
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
    """How the models of a service stand, in the words of KServe's `status.modelStatus`."""

    transition_status: str
    active_model_state: str
    target_model_state: str
    last_failure: FailureView | None


@dataclass(frozen=True, slots=True)
class PlacementView:
    """Which GPU, or slice of one, each replica of a revision gets.

    Attributes:
        asked: what the file asks for: an extended resource, or `auto`.
        resource: what the pods ask for.
        products: labels `nvidia.com/gpu.product` of the nodes to which they are held; none where any will do.
        why: what it was chosen by; empty where that is not known.
    """

    asked: str
    resource: str
    products: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A revision and how it is now.

    Attributes:
        role: stable, canary, shadow, retiring, retired or failed.
        replicas_wanted: how many should run now; 0 of a stopped service, and of a revision that serves no more.
        replicas_least, replicas_most: between which numbers `replicas_wanted` follows the load.
        scaling: what the load is and should be, in words; empty where the number is fixed.
        replicas_to_restart: how many replicas have yet to be started anew, as somebody asked.
        model_state: Pending, Standby, Loading, Loaded or FailedToLoad.
        is_failing: whether `last_failure` keeps a replica from serving now.
        placement: None without a GPU.
        egress: whether its model may open connections to the network.
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


@dataclass(frozen=True, slots=True)
class ImportView:
    """The import that a service waits for: where it comes from, how far it is, and whether it ended badly."""

    id: int
    model: str
    uri: str
    note: str
    ended_badly: bool


@dataclass(frozen=True, slots=True)
class FileView:
    """Whether what the service's file says is live; `message` says what is in its place, and why."""

    is_live: bool
    message: str


@dataclass(frozen=True, slots=True)
class DriftView:
    """A change made by hand on the cluster, in one sentence and part by part (`integrations.clusters.base.Drift`).

    Attributes:
        changed_at: when the manager wrote last; None where that is not known.
        since: when it was found first.
        times: how often it was put back; 1 where it is left.
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
    """A service with its running revisions and its newest rollout; `preview_url` is there in a blue/green rollout.

    `model_version` is None while the first is imported, `import_state` tells of that. `waits` says why it waits, be it
    because of its rollout; None where it waits for nothing. `drift` is what was changed by hand on its cluster.
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
    import_state: ImportView | None = None
    waits: Wait | None = None
    drift_policy: str = "heal"
    drift: tuple[DriftView, ...] = ()


@dataclass(frozen=True, slots=True)
class EventView:
    """What happened; `seq` counts up by one within the service, `request_id` is that of the request behind it."""

    seq: int
    at: datetime
    kind: str
    message: str
    revision: str | None
    rollout: int | None
    request_id: str | None


class Outcome(StrEnum):
    """What applying a file comes to."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class AnalysisPlan:
    """How many requests a rollout's analysis needs to find what each gate's `detect` states.

    Attributes:
        traffic: what the figures rest on, in one sentence.
        requests_per_second: of all clients; None where that is not known.
    """

    alpha: float
    traffic: str
    requests_per_second: float | None
    steps: tuple[StepPlan, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What applying a file or starting a rollout would do; `before` and `after` are the files, None without one.

    Attributes:
        contract: what the rollout that it starts changes for clients; None where it starts none.
        analysis: what the analysis of that rollout could find; None where it was not asked for.
        wishes: what the service's cluster is asked for from then to the rollout's end.
        room: whether that rollout fits on the cluster's nodes; None where it was not asked for.
        patched: what patches make of what is rendered for the cluster, as a unified diff; empty without patches.
        untried: why the cluster was not asked whether it takes that, in a sentence; empty where it was, or need not be.
        warnings: what the policy lets through, each a sentence.
    """

    outcome: Outcome
    message: str
    before: object
    after: object
    contract: Contract | None = None
    analysis: AnalysisPlan | None = None
    wishes: tuple[Desired, ...] = ()
    room: Room | None = None
    patched: str = ""
    untried: str = ""
    warnings: tuple[str, ...] = ()
