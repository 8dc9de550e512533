"""Step order of a policy: copies, then a group's requests, then rising weights. Pure."""

from itertools import pairwise

from common.errors import InvalidInput
from deployments.domain.policy.values import Policy, Step, Strategy


def check_order(policy: Policy) -> None:
    """Raise InvalidInput, naming the step at fault, where the steps do not lead from no traffic to all of it."""
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
    for index, step in enumerate(steps):
        _check_step(step, f"steps[{index}]")
    for index, (before, after) in enumerate(pairwise(steps), start=1):
        _check_pair(before, after, f"steps[{index}]", "weight" if policy.strategy is Strategy.SHADOW else "mirror")


def _check_step(step: Step, where: str) -> None:
    if not (step.weight or step.mirror or step.match):
        raise InvalidInput(
            f"{where}.weight is missing, and there is neither mirror nor match; say what the canary gets in this step",
            field=f"{where}.weight",
        )
    if step.mirror and (step.weight or step.match):
        other = "weight" if step.weight else "match"
        raise InvalidInput(
            f"{where} has mirror and {other}; a step copies requests or sends them, so make two steps of it",
            field=f"{where}.mirror",
        )
    if step.match and step.weight == 100:
        raise InvalidInput(
            f"{where} has a match, but its weight of 100 sends all requests to the canary anyway; remove the match",
            field=f"{where}.match",
        )


def _check_pair(before: Step, after: Step, where: str, mirror: str) -> None:
    """Check two consecutive steps; `mirror` is the file's name of the share that is copied."""
    if before.weight == 100 or (mirror == "weight" and before.mirror == 100):
        raise InvalidInput(
            f"{where} comes after a step with weight 100, which is the last there can be; remove it", field=where
        )
    if after.mirror:
        if not before.mirror:
            raise InvalidInput(
                f"{where}.mirror comes after a step in which clients get the canary's answers; put the copies first",
                field=f"{where}.mirror",
            )
        _check_rise(before.mirror, after.mirror, where, mirror)
    elif before.weight and not after.weight:
        raise InvalidInput(
            f"{where} has no weight after {before.weight}, so clients would lose the canary again; put a step with a "
            "match alone before the first weight",
            field=f"{where}.match",
        )
    elif after.weight:
        _check_rise(before.weight, after.weight, where, "weight")


def _check_rise(before: int, after: int, where: str, name: str) -> None:
    if after <= before:
        shares = "weights" if name == "weight" else "the shares to copy"
        raise InvalidInput(
            f"{where}.{name} is {after} after {before}; {shares} must rise from step to step",
            field=f"{where}.{name}",
        )
