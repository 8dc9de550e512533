"""A policy file that somebody types: what its steps look like, how long they take, or which line is wrong and why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from common.errors import InvalidInput
from deployments.domain.phases import Phase
from deployments.domain.policy import Policy, Strategy, parse_policy, uncompared
from deployments.selectors.rollouts.rollouts import step_view
from deployments.web.rollouts.timeline import Standing, Station
from deployments.web.services.file_text import UnreadableText, document_of, line_of

_LINES_AROUND = 2


@dataclass(frozen=True, slots=True)
class DrawnPolicy:
    """What the drawing of steps says of a rollout that nobody has started; named as `_track.html` asks."""

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
        hold_seconds: what the holds take together; analyses, webhooks and people can make it longer.
        longer: what can, in words such as `2 analyses`.
        warning: what its steps let through, a sentence; empty for nothing.
    """

    rollout: DrawnPolicy
    stations: tuple[Station, ...]
    hold_seconds: float
    longer: tuple[str, ...]
    deadline_seconds: float | None
    warning: str = ""


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of the text with its number, from 1; `is_wrong` where the sentence is about it."""

    number: int
    text: str
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a text is no policy; `lines` are the ones around it, none where the sentence is about no line."""

    message: str
    line: int | None
    lines: tuple[TextLine, ...]


def drawing_of(policy: Policy) -> Drawing:
    """Return how a policy's steps are drawn."""
    stations = tuple(Station(step_view(step), Standing.NEXT) for step in policy.steps)
    counts = {
        "analysis": sum(step.gate is not None for step in policy.steps),
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
    """Return the fields that a text says, which need not make a policy; raises InvalidInput where it is none."""
    return document_of(text, what="policy file", begins="name")


def read(text: str, *, name: str | None) -> tuple[Mapping[str, object], Policy]:
    """Return the policy file that a text says, and the policy; raises InvalidInput.

    Args:
        name: what the policy must be called; None where it is new.
    """
    document = document_in(text)
    return document, parse_policy(document, name=name)


def problem_of(text: str, error: InvalidInput) -> Problem:
    """Return what is wrong with a text, at the line of the field that the error names."""
    line = error.line if isinstance(error, UnreadableText) else line_of(text, error.field or "")
    rows = text.splitlines()
    if line is None or not rows:
        return Problem(error.message, None, ())
    first, last = max(1, line - _LINES_AROUND), min(len(rows), line + _LINES_AROUND)
    around: Sequence[int] = range(first, last + 1)
    return Problem(error.message, line, tuple(TextLine(each, rows[each - 1], each == line) for each in around))


def _many(name: str, number: int) -> str:
    if number == 1:
        return name
    noun, _, rest = name.partition(" ")
    plural = "analyses" if noun == "analysis" else f"{noun}s"
    return f"{plural} {rest}".strip()
