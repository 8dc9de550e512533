"""Policy preview while editing: a drawing of the steps with their duration, or the line at fault and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from common.errors import InvalidInput
from common.files.editor.text import UnreadableText, document_of, line_of
from deployments.domain.phases import Phase
from deployments.domain.policy import Policy, Strategy, parse_policy, uncompared
from deployments.selectors.rollouts.rollouts import step_view
from deployments.web.rollouts.timeline import Standing, Station

_LINES_AROUND = 2


@dataclass(frozen=True, slots=True)
class DrawnPolicy:
    """The values in the drawing of a rollout that has not started; named as in `_track.html`."""

    policy: str
    strategy: str
    then: str
    from_version: str = "that was there"
    to_version: str = "that is rolled out"
    phase: str = Phase.PENDING.value


@dataclass(frozen=True, slots=True)
class Drawing:
    """A policy as its steps.

    Attributes:
        hold_seconds: the sum of the holds; analyses, webhooks and people can make it longer.
        longer: what can, as text such as `2 analyses`.
        warning: a regression that its steps let through, a sentence; empty for none.
    """

    rollout: DrawnPolicy
    stations: tuple[Station, ...]
    hold_seconds: float
    longer: tuple[str, ...]
    deadline_seconds: float | None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the text with its number, from 1; `is_wrong` for the line at fault."""

    number: int
    text: str
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text is no policy; `lines` are those around the fault, empty where the fault has no line."""

    message: str
    line: int | None
    lines: tuple[TextLine, ...]
    further: tuple[str, ...] = ()


def drawing_of(policy: Policy) -> Drawing:
    """Return the drawing of a policy's steps."""
    stations = tuple(Station(step_view(step), Standing.NEXT) for step in policy.steps)
    counts = {
        "analysis": sum(step.gate is not None for step in policy.steps),
        "gate on labels": sum(gate.quality is not None for gate in policy.gates),
        "question to a webhook": sum(len(step.webhooks) for step in policy.steps),
        "pause for people": sum(step.pause or step.approval is not None for step in policy.steps),
        "approval before it begins": int(policy.approval is not None),
    }
    if policy.steps and policy.strategy is not Strategy.CANARY and policy.then == "pause":
        counts["pause for people"] += not policy.steps[-1].pause
    return Drawing(
        rollout=DrawnPolicy(policy.name, policy.strategy.value, policy.then.value),
        stations=stations,
        hold_seconds=sum((step.hold for step in policy.steps), timedelta(0)).total_seconds(),
        longer=tuple(f"{number} {_many(name, number)}" for name, number in counts.items() if number),
        deadline_seconds=None if policy.deadline is None else policy.deadline.total_seconds(),
        warning=uncompared(policy),
    )


def document_in(text: str) -> Mapping[str, Any]:
    """Return the fields of a text, which need not make a policy; raises InvalidInput where it is no YAML object."""
    return document_of(text, what="policy file", begins="name")


def read(text: str, *, name: str | None) -> tuple[Mapping[str, object], Policy]:
    """Return the policy file of a text, and the policy; raises InvalidInput.

    Args:
        name: the required name of the policy; None for a new one.
    """
    document = document_in(text)
    return document, parse_policy(document, name=name)


def problem_of(text: str, error: InvalidInput) -> Problem:
    """Return what is wrong with a text, at the line of the error's field."""
    line = error.line if isinstance(error, UnreadableText) else line_of(text, error.field or "")
    rows = text.splitlines()
    if line is None or not rows:
        return Problem(error.message, None, (), error.further)
    first, last = max(1, line - _LINES_AROUND), min(len(rows), line + _LINES_AROUND)
    around: Sequence[int] = range(first, last + 1)
    excerpt = tuple(TextLine(each, rows[each - 1], each == line) for each in around)
    return Problem(error.message, line, excerpt, error.further)


def _many(name: str, number: int) -> str:
    if number == 1:
        return name
    noun, _, rest = name.partition(" ")
    plural = "analyses" if noun == "analysis" else f"{noun}s"
    return f"{plural} {rest}".strip()
