"""The policy file, read and written. Pure.

A policy file is `{name, strategy, alpha, approval, steps: [{weight, hold, pause, analysis}], onInconclusive,
scaleDownDelay, progressDeadline}`, for a shadow also `then` (docs/reference/rollouts.md). The rollout keeps the file it
was started with.
"""

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise

from common import durations
from common.errors import InvalidInput
from common.names import check_dns_label
from deployments.document import Document
from deployments.policy.approval import approval_json, parse_approval, parse_pause
from deployments.policy.gate import gate_json, parse_gate
from deployments.policy.values import DIRECT, OnInconclusive, Policy, Step, Strategy, Then


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
    approval = document.optional("approval")
    policy = Policy(
        name=check_dns_label(found),
        strategy=document.choice("strategy", Strategy, default=Strategy.CANARY),
        then=document.choice("then", Then, default=Then.PAUSE) if is_shadow else Then.PROMOTE,
        steps=tuple(_step(step, weight) for step in document.documents("steps")),
        on_inconclusive=document.choice("onInconclusive", OnInconclusive, default=OnInconclusive.PAUSE),
        scale_down_delay=document.duration("scaleDownDelay", default=timedelta(seconds=30)),
        progress_deadline=document.duration("progressDeadline", default=timedelta(minutes=2), positive=True),
        approval=None if approval is None else parse_approval(approval),
        alpha=document.number("alpha", minimum=0.000001, maximum=0.2, default=0.01),
    )
    document.refuse_unknown()
    _check_weights(policy)
    return policy


def _step(document: Document, default_weight: int | None) -> Step:
    analysis = document.optional("analysis")
    weight = {} if default_weight is None else {"default": default_weight}
    pause, approval = parse_pause(document)
    step = Step(
        weight=document.integer("weight", minimum=1, maximum=100, **weight),
        hold=document.duration("hold", default=timedelta(0)),
        pause=pause,
        gate=None if analysis is None else parse_gate(analysis),
        approval=approval,
    )
    document.refuse_unknown()
    return step


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
        **({} if policy.approval is None else {"approval": approval_json(policy.approval)}),
        "alpha": policy.alpha,
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
        "pause": step.pause if step.approval is None else approval_json(step.approval),
        "analysis": None if step.gate is None else gate_json(step.gate),
    }


def stored_policy(value: Mapping[str, object]) -> Policy:
    """Return the policy out of what `policy_json` gave; unlike a file it may be DIRECT."""
    return DIRECT if value.get("name") == "" else parse_policy(value)
