"""Rollout policies as values, and the policy file they are read from. Pure.

A policy file is `{name, strategy, steps: [{weight, hold, pause, analysis}], onInconclusive, scaleDownDelay,
progressDeadline}`, for a shadow also `then` (docs/reference/rollouts.md). The rollout keeps the file it was started
with.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise

from common import durations
from common.errors import InvalidInput
from common.names import check_dns_label
from deployments.document import Document


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


class Then(StrEnum):
    """What follows the last step: a person is asked, all traffic moves, or the new revision goes again."""

    PAUSE = "pause"
    PROMOTE = "promote"
    END = "end"


@dataclass(frozen=True, slots=True)
class Gate:
    """What a step's canary has to hold to.

    Attributes:
        min_requests: how many finished requests of the canary a verdict of Successful needs at least.
        max_error_percent: server errors among the canary's requests, as clients saw them.
        max_error_increase_percent: percentage points by which the canary's errors (server's and, apart, client's) may
            exceed stable's of the same window; None leaves them uncompared.
        latency_quantile: fixes the edge "slow" from stable: so many of stable's requests were faster.
        max_slow_percent: how many of the canary's requests may be slower than that edge; None leaves latency ungated.
        deadline: from the first request the canary gets; undecided by then is Inconclusive.
    """

    min_requests: int = 100
    max_error_percent: float = 1.0
    max_error_increase_percent: float | None = 1.0
    latency_quantile: float = 0.95
    max_slow_percent: float | None = 15.0
    deadline: timedelta = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Step:
    """One weight of the canary, or one share for the shadow.

    Attributes:
        weight: percent of requests sent to the canary, or copied to the shadow, 1..100.
        hold: shortest time at this weight, from when the gateway confirmed it.
        pause: wait for a person's promote after hold and analysis.
        gate: None lets the step pass on time alone.
    """

    weight: int
    hold: timedelta = timedelta(0)
    pause: bool = False
    gate: Gate | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """How one rollout goes; without steps all traffic moves as soon as the new revision is ready.

    Attributes:
        scale_down_delay: how long the old revision is kept warm after the promotion.
        progress_deadline: how long the canary may be not ready, at the start or later.
        then: what follows the last step; a canary always promotes.
    """

    name: str
    steps: tuple[Step, ...] = ()
    strategy: Strategy = Strategy.CANARY
    on_inconclusive: OnInconclusive = OnInconclusive.PAUSE
    scale_down_delay: timedelta = timedelta(seconds=30)
    progress_deadline: timedelta = timedelta(minutes=2)
    then: Then = Then.PROMOTE

    @property
    def subject(self) -> str:
        """Return what sentences call the new revision while it is on trial."""
        return "shadow" if self.strategy is Strategy.SHADOW else "canary"


DIRECT = Policy(name="")
"""For a change of a service that names no policy: all traffic moves once the new revision is ready."""


def parse_policy(value: object, *, name: str | None = None) -> Policy:
    """Return the policy that a policy file says.

    Args:
        name: what the file must call the policy, where its address says so; the file may then leave it out.

    Raises:
        InvalidInput: with one sentence and the dotted name of the field at fault.
    """
    document = Document.of(value, "the policy file")
    found = document.text("name", default=name)
    if name is not None and found != name:
        raise InvalidInput(
            f"name is {found!r}, but the policy is put as {name!r}; give both the same name", field="name"
        )
    strategy = document.text("strategy", default=Strategy.CANARY.value)
    weight = 100 if strategy == Strategy.BLUE_GREEN.value else None
    is_shadow = strategy == Strategy.SHADOW.value
    policy = Policy(
        name=check_dns_label(found),
        strategy=document.choice("strategy", Strategy, default=Strategy.CANARY),
        then=document.choice("then", Then, default=Then.PAUSE) if is_shadow else Then.PROMOTE,
        steps=tuple(_step(step, weight) for step in document.documents("steps")),
        on_inconclusive=document.choice("onInconclusive", OnInconclusive, default=OnInconclusive.PAUSE),
        scale_down_delay=document.duration("scaleDownDelay", default=timedelta(seconds=30)),
        progress_deadline=document.duration("progressDeadline", default=timedelta(minutes=2), positive=True),
    )
    document.refuse_unknown()
    _check_weights(policy)
    return policy


def _step(document: Document, default_weight: int | None) -> Step:
    analysis = document.optional("analysis")
    weight = {} if default_weight is None else {"default": default_weight}
    step = Step(
        weight=document.integer("weight", minimum=1, maximum=100, **weight),
        hold=document.duration("hold", default=timedelta(0)),
        pause=document.flag("pause", default=False),
        gate=None if analysis is None else _gate(analysis),
    )
    document.refuse_unknown()
    return step


def _gate(document: Document) -> Gate:
    gate = Gate(
        min_requests=document.integer("minRequests", minimum=1, maximum=100_000_000, default=100),
        max_error_percent=document.number("maxErrorPercent", minimum=0, maximum=100, default=1.0),
        max_error_increase_percent=document.optional_number(
            "maxErrorIncreasePercent", minimum=0, maximum=100, default=1.0
        ),
        latency_quantile=document.number("latencyQuantile", minimum=0.5, maximum=0.9999, default=0.95),
        max_slow_percent=document.optional_number("maxSlowPercent", minimum=0, maximum=100, default=15.0),
        deadline=document.duration("deadline", default=timedelta(minutes=5), positive=True),
    )
    document.refuse_unknown()
    if gate.max_slow_percent is not None:
        nominal = 100 * (1 - gate.latency_quantile)
        if gate.max_slow_percent < nominal - 1e-9:
            raise InvalidInput(
                f"{document.path('maxSlowPercent')} is {gate.max_slow_percent:g}, but {nominal:g} % of stable's own "
                f"requests are slower than its {gate.latency_quantile:g} quantile; allow at least that many",
                field=document.path("maxSlowPercent"),
            )
    return gate


def _check_weights(policy: Policy) -> None:
    steps = policy.steps
    if policy.strategy is Strategy.BLUE_GREEN and [step.weight for step in steps] != [100]:
        raise InvalidInput(
            f"steps has the weights {[step.weight for step in steps]}; a blue/green has exactly one step, of weight "
            "100, which is passed on the preview address before the switch",
            field="steps",
        )
    if not steps:
        raise InvalidInput(
            f"steps is empty; a {policy.subject} needs at least one step, such as {{weight: 10, hold: 1m}}",
            field="steps",
        )
    for index, (before, after) in enumerate(pairwise(steps), start=1):
        if before.weight == 100:
            raise InvalidInput(
                f"steps[{index}] comes after a step with weight 100, which is the last there can be; remove it",
                field=f"steps[{index}]",
            )
        if after.weight <= before.weight:
            raise InvalidInput(
                f"steps[{index}].weight is {after.weight} after {before.weight}; weights must rise from step to step",
                field=f"steps[{index}].weight",
            )


def policy_json(policy: Policy) -> dict[str, object]:
    """Return the whole policy file, defaults filled in; `parse_policy` reads it back to an equal policy."""
    return {
        "name": policy.name,
        "strategy": policy.strategy.value,
        "steps": [_step_json(step) for step in policy.steps],
        "onInconclusive": policy.on_inconclusive.value,
        "scaleDownDelay": durations.render(policy.scale_down_delay),
        "progressDeadline": durations.render(policy.progress_deadline),
        **({"then": policy.then.value} if policy.strategy is Strategy.SHADOW else {}),
    }


def _step_json(step: Step) -> dict[str, object]:
    return {
        "weight": step.weight,
        "hold": durations.render(step.hold),
        "pause": step.pause,
        "analysis": None if step.gate is None else gate_json(step.gate),
    }


def gate_json(gate: Gate) -> dict[str, object]:
    """Return the `analysis` part of a step."""
    return {
        "minRequests": gate.min_requests,
        "maxErrorPercent": gate.max_error_percent,
        "maxErrorIncreasePercent": gate.max_error_increase_percent,
        "latencyQuantile": gate.latency_quantile,
        "maxSlowPercent": gate.max_slow_percent,
        "deadline": durations.render(gate.deadline),
    }


def stored_policy(value: Mapping[str, object]) -> Policy:
    """Return the policy out of what `policy_json` gave; unlike a file it may be DIRECT."""
    return DIRECT if value.get("name") == "" else parse_policy(value)
