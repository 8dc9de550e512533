"""Rollout state as recorded, and the observation of one tick. Pure."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain

from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.phases import Code, Phase, Reason
from deployments.domain.policy import ApprovalRule, Policy, Step, Strategy, Then
from deployments.domain.rollout.approvals import Tally
from deployments.domain.rollout.surge import shared
from deployments.domain.rollout.traffic_split import NOTHING, Portion
from deployments.domain.rollout.webhooks import Asked
from integrations.clusters.base import CompanionKind


@dataclass(frozen=True, slots=True)
class RolloutState:
    """A rollout as recorded.

    Attributes:
        step_index: the present step; the number of steps once all traffic is to move.
        portion: the desired traffic of the canary or shadow now.
        confirmed_at: when the gateway first sent the present portion; the hold counts from then.
        waiting_since: since when the canary has not been ready; None while it is.
        restart_baseline: restarts of each of the canary's replicas before this attempt; None until observed.
        deadline_at: when its time is up; None where it has no end, or was paused for it.
        full_replicas: how many stable had at the start, where the canary's replace them; None before that is known, and
            with a surge.
    """

    policy: Policy
    phase: Phase
    reason: Reason
    attempt_started_at: datetime
    attempt: int = 1
    step_index: int = 0
    portion: Portion = NOTHING
    verdict: Verdict = Verdict.RUNNING
    confirmed_at: datetime | None = None
    waiting_since: datetime | None = None
    finished_at: datetime | None = None
    restart_baseline: Mapping[str, int] | None = None
    deadline_at: datetime | None = None
    full_replicas: int | None = None

    @property
    def step(self) -> Step | None:
        """Return the present step; None once all traffic is to move."""
        return self.policy.steps[self.step_index] if self.step_index < len(self.policy.steps) else None

    @property
    def is_mirroring(self) -> bool:
        """Return whether the present step copies requests, whose answers no client gets."""
        return self.step is not None and self.step.mirror > 0

    @property
    def comparison(self) -> Terms | None:
        """Return the terms for answers to copies at the present step; None where they are not compared."""
        step = self.step
        return step.gate.comparison if self.is_mirroring and step is not None and step.gate is not None else None

    @property
    def is_previewing(self) -> bool:
        """Return whether the canary is on trial at the preview address, while all clients are stable's."""
        return self.policy.strategy is Strategy.BLUE_GREEN and self.step is not None

    @property
    def has_its_portion(self) -> bool:
        """Return whether the gateway was given the portion of the present step."""
        return self.portion == self.wanted

    @property
    def pauses(self) -> bool:
        """Return whether the present step ends with a pause."""
        last = self.step_index == len(self.policy.steps) - 1
        return self.step is not None and (self.step.pause or (last and self.policy.then is Then.PAUSE))

    @property
    def approval(self) -> ApprovalRule | None:
        """Return the approvals required here: before any traffic, or at the end of the present step."""
        if self.phase is Phase.PENDING:
            return self.policy.approval
        return self.step.approval if self.step is not None and not self.phase.is_finished else None

    @property
    def asks_for_approval(self) -> bool:
        """Return whether approvals can be given now; those of a step only once its evidence is complete."""
        is_early = self.reason.code is Code.PAUSED_BY_WEBHOOK
        return self.approval is not None and self.phase in (Phase.PENDING, Phase.PAUSED) and not is_early

    @property
    def approval_step(self) -> int | None:
        """Return the step of an approval given now; None for the beginning."""
        return None if self.phase is Phase.PENDING else self.step_index

    @property
    def wanted(self) -> Portion:
        """Return the portion of the present step, or of what follows the last one."""
        if self.step is not None:
            return Portion() if self.is_previewing else Portion.of(self.step)
        return Portion() if self.policy.then is Then.END else Portion(weight=100)

    @property
    def where(self) -> str:
        """Return its position, as a part of a sentence."""
        if self.step is None:
            return "the end" if self.policy.then is Then.END else "the move to 100 %"
        if self.is_previewing:
            return "the preview"
        return f"step {self.step_index + 1} of {len(self.policy.steps)} ({self.wanted.short})"


@dataclass(frozen=True, slots=True)
class CanarySeen:
    """The canary as the cluster reports it.

    Attributes:
        replicas_wanted: how many it needs for its present portion.
        replicas_at_full: how many it needs for all the traffic; 0 where it always has enough.
        restarts: of each replica, since the replica exists.
        message: why it is not ready; one sentence or empty.
        shared_replicas: how many it and stable have together, where its own replace stable's; else 0.
        refusal: why none of its replicas can ever start, one sentence; empty where they can.
        companions: the same of its transformer and explainer, where it has them. It is ready only when all are.
    """

    replicas_wanted: int
    replicas_ready: int
    restarts: Mapping[str, int] = field(default_factory=dict)
    message: str = ""
    replicas_at_full: int = 0
    shared_replicas: int = 0
    companions: "Mapping[CompanionKind, CanarySeen]" = field(default_factory=dict)
    refusal: str = ""

    @property
    def is_ready(self) -> bool:
        """Return whether it has its desired replicas, so that it may get more traffic."""
        is_own = 0 < self.replicas_wanted <= self.replicas_ready
        return is_own and all(its.is_ready for its in self.companions.values())

    @property
    def serves(self) -> bool:
        """Return whether any of its replicas accepts requests."""
        return self.replicas_ready > 0 and all(its.serves for its in self.companions.values())

    @property
    def all_restarts(self) -> Mapping[str, int]:
        """Return the restarts of each of its replicas, and of its companions'."""
        return dict(chain(self.restarts.items(), *(its.restarts.items() for its in self.companions.values())))

    def lacks_for(self, portion: Portion) -> str:
        """Return what it lacks for a portion, after `waits:`; empty where it has enough."""
        if self.replicas_ready < (needed := self.needed_for(portion)):
            return f"{self.replicas_ready} of the {needed} replicas that it needs are ready"
        lacking = ((kind, its.lacks_for(portion)) for kind, its in self.companions.items())
        return next((f"of its {kind} {what}" for kind, what in lacking if what), "")

    def needed_for(self, portion: Portion) -> int:
        """Return how many replicas it needs (Argo Rollouts: as large a part of stable's as its weight, rounded up)."""
        if self.shared_replicas:
            return shared(self.shared_replicas, portion.load_percent)[1]
        return math.ceil(self.replicas_at_full * portion.load_percent / 100)


@dataclass(frozen=True, slots=True)
class Observation:
    """The observation of one tick.

    Attributes:
        canary: None where the cluster could not be read; `problem` says why.
        confirmed: the gateway sends and copies exactly the last portion set.
        gateway_message: why it does not; empty without a reason.
        background: of the analysis in the background; None without one.
        finding: of the present step's analysis; None before the step began and where metrics could not be read.
        problem: why something could not be read.
        approvals: the approvals where some are required; None elsewhere.
        webhooks: those called at the present step of this attempt.
    """

    canary: CanarySeen | None
    confirmed: bool = False
    gateway_message: str = ""
    finding: Finding | None = None
    problem: str = ""
    approvals: Tally | None = None
    webhooks: tuple[Asked, ...] = ()
    background: Finding | None = None
