"""Rollout policy values. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from deployments.domain.policy.approval import ApprovalRule
from deployments.domain.policy.gate import Gate
from deployments.domain.policy.webhooks import StepWebhook
from integrations.clusters.base import HeaderMatch, SessionAffinity


class Strategy(StrEnum):
    """How traffic moves to the new revision.

    canary: a rising share of clients' requests. shadow: copies of them, whose answers are discarded. blueGreen:
    requests to the preview address, and then all requests in one switch.
    """

    CANARY = "canary"
    SHADOW = "shadow"
    BLUE_GREEN = "blueGreen"


class OnInconclusive(StrEnum):
    """Action of a rollout when a step's analysis deadline passed undecided."""

    PAUSE = "pause"
    ABORT = "abort"


class OnDeadline(StrEnum):
    """Action of a rollout that is not over by its deadline."""

    PAUSE = "pause"
    ABORT = "abort"


class Then(StrEnum):
    """What follows the last step: a pause, the promotion, or the removal of the new revision."""

    PAUSE = "pause"
    PROMOTE = "promote"
    END = "end"


@dataclass(frozen=True, slots=True)
class Step:
    """The traffic of the canary or shadow, its duration, and its gate.

    Attributes:
        weight: percent of requests sent to the canary; 0 where it gets only copies, or only a group's requests.
        hold: its shortest time, from the gateway's confirmation.
        pause: wait for people after hold and analysis.
        gate: None lets the step pass on time alone.
        approval: ends the pause; None is anybody's promote.
        mirror: percent of requests that are copied, whose answers are discarded; 0 where it gets requests themselves.
        match: requests with all of these headers go to the canary, besides `weight` percent of the others.
        webhooks: external systems that are queried before it begins, or after hold and analysis and before its pause.
    """

    weight: int = 0
    hold: timedelta = timedelta(0)
    pause: bool = False
    gate: Gate | None = None
    approval: ApprovalRule | None = None
    mirror: int = 0
    match: tuple[HeaderMatch, ...] = ()
    webhooks: tuple[StepWebhook, ...] = ()


@dataclass(frozen=True, slots=True)
class Policy:
    """The policy of one rollout; without steps all traffic moves as soon as the new revision is ready.

    Attributes:
        alpha: probability, 0..1, that a canary within all limits ever gets the verdict Failed, over the whole rollout.
        scale_down_delay: how long the old revision is kept warm after the promotion.
        progress_deadline: how long the canary may be unready, at the start or later.
        then: what follows the last step; a canary always promotes.
        approval: the approvals required before the first step; None without any.
        affinity: the session key of clients' requests; None leaves each to chance.
        deadline: how long an attempt may take, without the time in which the reconciler saw nothing; None for ever.
        background: the gate during all steps in which clients get the canary's answers, and of a shadow or preview in
            its own; it never lets a step pass.
        surge: the canary's replicas come on top of stable's; without a surge they replace stable's.
    """

    name: str
    steps: tuple[Step, ...] = ()
    strategy: Strategy = Strategy.CANARY
    on_inconclusive: OnInconclusive = OnInconclusive.PAUSE
    scale_down_delay: timedelta = timedelta(seconds=30)
    progress_deadline: timedelta = timedelta(minutes=2)
    then: Then = Then.PROMOTE
    approval: ApprovalRule | None = None
    alpha: float = 0.01
    affinity: SessionAffinity | None = None
    deadline: timedelta | None = None
    on_deadline: OnDeadline = OnDeadline.ABORT
    background: Gate | None = None
    surge: bool = True

    @property
    def gates(self) -> tuple[Gate, ...]:
        """Return all gates of the policy."""
        every = (*(step.gate for step in self.steps), self.background)
        return tuple(gate for gate in every if gate is not None)

    @property
    def subject(self) -> str:
        """Return the name of the new revision in sentences while it is on trial."""
        return "shadow" if self.strategy is Strategy.SHADOW else "canary"


DIRECT = Policy(name="")
"""For a change of a service that names no policy: all traffic moves once the new revision is ready."""
