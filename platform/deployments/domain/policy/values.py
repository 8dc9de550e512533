"""What a rollout policy is made of. Pure."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from deployments.domain.policy.approval import ApprovalRule
from deployments.domain.policy.gate import Gate
from deployments.domain.policy.webhooks import StepWebhook
from integrations.clusters.base import HeaderMatch, SessionAffinity


class Strategy(StrEnum):
    """How traffic comes to the new revision.

    canary: a rising share of clients' requests. shadow: copies of them, whose answers nobody sees. blueGreen: what is
    sent to the preview address, and then all requests in one switch.
    """

    CANARY = "canary"
    SHADOW = "shadow"
    BLUE_GREEN = "blueGreen"


class OnInconclusive(StrEnum):
    """What a rollout does when a step's analysis deadline passed undecided."""

    PAUSE = "pause"
    ABORT = "abort"


class OnDeadline(StrEnum):
    """What a rollout does that is not over by its deadline."""

    PAUSE = "pause"
    ABORT = "abort"


class Then(StrEnum):
    """What follows the last step: a person is asked, all traffic moves, or the new revision goes again."""

    PAUSE = "pause"
    PROMOTE = "promote"
    END = "end"


@dataclass(frozen=True, slots=True)
class Step:
    """What the canary or shadow gets, for how long, and what it has to hold to.

    Attributes:
        weight: percent of requests sent to the canary; 0 where it gets copies, or a group's requests alone.
        hold: shortest time of it, from when the gateway confirmed it.
        pause: wait for people after hold and analysis.
        gate: None lets the step pass on time alone.
        approval: what ends the pause; None is anybody's promote.
        mirror: percent of requests that are copied, whose answers nobody sees; 0 where it gets requests themselves.
        match: requests with all of these headers go to the canary, besides `weight` percent of the others.
        webhooks: systems outside that are asked before it begins, or after hold and analysis and before its pause.
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
    """How one rollout goes; without steps all traffic moves as soon as the new revision is ready.

    Attributes:
        alpha: chance, 0..1, that a canary which is within all limits is ever failed, over the whole rollout.
        scale_down_delay: how long the old revision is kept warm after the promotion.
        progress_deadline: how long the canary may be not ready, at the start or later.
        then: what follows the last step; a canary always promotes.
        approval: what people have to agree to before the first step begins; None where nobody is asked.
        affinity: by what clients' requests belong together; None leaves each to chance.
        deadline: how long an attempt may take, without the time in which nobody could look; None for ever.
        background: what the canary has to hold to during all steps in which clients get its answers, and a shadow or
            preview in its own; it never lets a step pass.
        surge: the canary's replicas come on top of stable's; without it they are taken out of them.
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
        """Return all that the canary has to hold to."""
        every = (*(step.gate for step in self.steps), self.background)
        return tuple(gate for gate in every if gate is not None)

    @property
    def subject(self) -> str:
        """Return what sentences call the new revision while it is on trial."""
        return "shadow" if self.strategy is Strategy.SHADOW else "canary"


DIRECT = Policy(name="")
"""For a change of a service that names no policy: all traffic moves once the new revision is ready."""
