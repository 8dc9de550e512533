"""Policy file: parser and writer. Pure.

A policy file is `{name, strategy, alpha, approval, steps: [{weight, mirror, match, hold, pause, analysis}],
onInconclusive, scaleDownDelay, progressDeadline, sessionAffinity, analysis, deadline, onDeadline}`, for a shadow also
`then` (docs/reference/rollouts.md). A rollout keeps the file of its start.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from common import durations
from common.errors import InvalidInput
from common.files.document import Document, parse_document
from common.identifiers import check_dns_label
from deployments.domain.policy.approval import approval_json, parse_approval, parse_pause
from deployments.domain.policy.clients import affinity_json, match_json, parse_affinity, parse_match
from deployments.domain.policy.comparison import check_copied
from deployments.domain.policy.gate import background_json, gate_json, parse_background, parse_gate
from deployments.domain.policy.order import check_order
from deployments.domain.policy.values import DIRECT, OnDeadline, OnInconclusive, Policy, Step, Strategy, Then
from deployments.domain.policy.webhooks import parse_webhooks, webhook_json

_NOT_OF_A_CANARY = {
    Strategy.SHADOW: {
        "mirror": "the share of a shadow's step is its weight, and all of it is copies",
        "match": "a shadow gets copies of a share of all requests; name a group in a step of a canary",
    },
    Strategy.BLUE_GREEN: {
        "mirror": "a blue/green is tried on its preview address; copies are a step of a canary or a shadow",
        "match": "a blue/green is tried on its preview address; name a group in a step of a canary",
    },
}
_OF_A_CANARY = {
    "sessionAffinity": "only a canary divides clients' sessions between two revisions",
    "surge": "only a canary takes requests off stable, so that its replicas can take the place of stable's",
}


def parse_policy(value: object, *, name: str | None = None) -> Policy:
    """Return the policy of a policy file.

    Args:
        name: the required name, where the address has one; the file may then leave it out.

    Raises:
        InvalidInput: with one sentence and the dotted name of the field at fault; of several faults it names the first,
            and `details` has a sentence for each.
    """
    return parse_document(value, "the policy file", lambda document: _policy(document, name))


def _policy(document: Document, name: str | None) -> Policy:
    found = document.text("name", default=name, check=check_dns_label)
    if name is not None and found != name:
        document.fault("name", f"is {found!r}, but the policy is put as {name!r}; give both the same name")
    strategy = document.choice("strategy", Strategy, default=Strategy.CANARY)
    is_shadow, is_canary = strategy is Strategy.SHADOW, strategy is Strategy.CANARY
    if not document.is_sound("strategy"):
        document.raw("then", None)  # right for a shadow, which may have been meant
    policy = Policy(
        name=found,
        strategy=strategy,
        then=document.choice("then", Then, default=Then.PAUSE) if is_shadow else Then.PROMOTE,
        steps=document.each("steps", lambda step: _step(step, strategy)),
        affinity=document.part("sessionAffinity", parse_affinity) if is_canary else None,
        on_inconclusive=document.choice("onInconclusive", OnInconclusive, default=OnInconclusive.PAUSE),
        scale_down_delay=document.duration("scaleDownDelay", default=timedelta(seconds=30)),
        progress_deadline=document.duration("progressDeadline", default=timedelta(minutes=2), positive=True),
        approval=document.part("approval", parse_approval),
        deadline=document.duration("deadline", default=timedelta(0), positive=True) or None,
        on_deadline=document.choice("onDeadline", OnDeadline, default=OnDeadline.ABORT),
        background=document.part("analysis", parse_background),
        surge=document.flag("surge", default=True) if is_canary else True,
        alpha=document.number("alpha", minimum=0.000001, maximum=0.2, default=0.01),
    )
    document.refuse_unknown({} if is_canary else _OF_A_CANARY)
    if document.is_sound():
        _check_relations(document, policy)
    return policy


def _check_relations(document: Document, policy: Policy) -> None:
    document.attempt(None, check_order, policy)
    for index, step in enumerate(policy.steps):
        terms, where = None if step.gate is None else step.gate.comparison, f"steps[{index}].analysis.comparison"
        document.attempt(None, check_copied, terms, is_copied=step.mirror > 0, where=where)
    behind = None if policy.background is None else policy.background.comparison
    document.attempt(None, check_copied, behind, is_copied=False, where="analysis.comparison")
    document.attempt(None, _check_surge, policy)
    document.attempt(None, _check_deadline, policy, said=document.raw("onDeadline", None) is not None)


def _check_surge(policy: Policy) -> None:
    copied = next((index for index, step in enumerate(policy.steps) if step.mirror), None)
    if not policy.surge and copied is not None:
        raise InvalidInput(
            f"surge is false, but steps[{copied}] gives copies: stable answers all requests then and can give up no "
            "replica; leave that step out, or allow a surge",
            field="surge",
        )


def _check_deadline(policy: Policy, *, said: bool) -> None:
    if policy.deadline is None:
        if said:
            raise InvalidInput("onDeadline is there without a deadline; say deadline, such as 2h", field="onDeadline")
        return
    holds = sum((step.hold for step in policy.steps), timedelta(0))
    if policy.deadline <= holds:
        raise InvalidInput(
            f"deadline is {durations.render(policy.deadline)}, but the holds of the steps alone take "
            f"{durations.render(holds)}; allow more",
            field="deadline",
        )


def _step(document: Document, strategy: Strategy) -> Step:
    pause, approval = document.attempt((False, None), parse_pause, document)
    step = Step(
        hold=document.duration("hold", default=timedelta(0)),
        pause=pause,
        gate=document.part("analysis", parse_gate),
        approval=approval,
        webhooks=document.attempt((), parse_webhooks, document),
    )
    step = replace(step, **_portion(document, strategy))
    document.refuse_unknown(_NOT_OF_A_CANARY.get(strategy, {}))
    return step


def _portion(document: Document, strategy: Strategy) -> dict[str, Any]:
    """Return the traffic of a step; a shadow's weight is the share of its copies."""
    if strategy is Strategy.SHADOW:
        return {"mirror": document.integer("weight", minimum=1, maximum=100)}
    if strategy is Strategy.BLUE_GREEN:
        return {"weight": document.integer("weight", minimum=1, maximum=100, default=100)}
    given = {
        name: document.integer(name, minimum=1, maximum=100)
        for name in ("weight", "mirror")
        if document.raw(name, None) is not None
    }
    return {**given, "match": document.attempt((), parse_match, document)}


def policy_json(policy: Policy) -> dict[str, object]:
    """Return the whole policy file, defaults filled in; `parse_policy` reads it back to an equal policy."""
    return {
        "name": policy.name,
        "strategy": policy.strategy.value,
        **({} if policy.approval is None else {"approval": approval_json(policy.approval)}),
        "alpha": policy.alpha,
        "steps": [_step_json(step, policy.strategy) for step in policy.steps],
        "onInconclusive": policy.on_inconclusive.value,
        "scaleDownDelay": durations.render(policy.scale_down_delay),
        "progressDeadline": durations.render(policy.progress_deadline),
        **({"then": policy.then.value} if policy.strategy is Strategy.SHADOW else {}),
        **({} if policy.affinity is None else {"sessionAffinity": affinity_json(policy.affinity)}),
        **({} if policy.surge else {"surge": False}),
        **_deadline_json(policy),
        **({} if policy.background is None else {"analysis": background_json(policy.background)}),
    }


def _deadline_json(policy: Policy) -> dict[str, object]:
    if policy.deadline is None:
        return {}
    return {"deadline": durations.render(policy.deadline), "onDeadline": policy.on_deadline.value}


def _step_json(step: Step, strategy: Strategy) -> dict[str, object]:
    given: dict[str, object] = {"weight": step.weight, "mirror": step.mirror, "match": match_json(step.match)}
    if strategy is Strategy.SHADOW:
        given = {"weight": step.mirror}
    return {
        **{name: value for name, value in given.items() if value},
        "hold": durations.render(step.hold),
        "pause": step.pause if step.approval is None else approval_json(step.approval),
        "analysis": None if step.gate is None else gate_json(step.gate),
        **({"webhooks": [webhook_json(webhook) for webhook in step.webhooks]} if step.webhooks else {}),
    }


def stored_policy(value: Mapping[str, object]) -> Policy:
    """Return the policy from the JSON of `policy_json`; unlike a file it may be DIRECT."""
    return DIRECT if value.get("name") == "" else parse_policy(value)
