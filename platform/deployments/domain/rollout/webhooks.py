"""Webhook verdicts: the answers of a step's external systems, and their effect on the rollout. Pure.

Only a clear go lets a step pass and only a clear no ends the rollout; any other answer, and no answer, means wait: an
outage there neither promotes nor fails anything.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from deployments.domain.policy import Step, StepWebhook, When

_MAX_MESSAGE = 300
_FIRST_AGAIN, _LAST_AGAIN = timedelta(seconds=5), timedelta(seconds=60)


class Answer(StrEnum):
    """The last answer of a system; unavailable is no answer, or none that can be understood."""

    GO = "go"
    WAIT = "wait"
    NO = "no"
    UNAVAILABLE = "unavailable"

    @property
    def is_decided(self) -> bool:
        """Return whether it is final."""
        return self in (Answer.GO, Answer.NO)


@dataclass(frozen=True, slots=True)
class Asked:
    """A webhook of a step, and its state.

    Attributes:
        tries: the number of calls.
        is_overdue: its deadline passed without a go or a no.
    """

    step_index: int
    name: str
    answer: Answer = Answer.WAIT
    message: str = ""
    tries: int = 0
    is_overdue: bool = False


class Ruling(StrEnum):
    """The combined result of all webhooks of a step."""

    GO = "go"
    WAIT = "wait"
    NO = "no"
    OVERDUE = "overdue"


def rule(step: Step, step_index: int, when: When, asked: Iterable[Asked]) -> tuple[Ruling, str]:
    """Return the ruling of a step's webhooks, and the sentence of those that decide it."""
    wanted = {webhook.name for webhook in step.webhooks if webhook.when is when}
    there = {each.name: each for each in asked if each.step_index == step_index and each.name in wanted}
    undecided = [
        there.get(webhook.name) or Asked(step_index, webhook.name)
        for webhook in step.webhooks
        if webhook.name in wanted and (webhook.name not in there or not there[webhook.name].answer.is_decided)
    ]
    if refusing := [each for each in there.values() if each.answer is Answer.NO]:
        return Ruling.NO, _sentence(refusing)
    if not undecided:
        return Ruling.GO, ""
    if overdue := [each for each in undecided if each.is_overdue]:
        return Ruling.OVERDUE, _sentence(overdue)
    return Ruling.WAIT, _sentence(undecided)


def to_ask(step: Step, step_index: int, asked: Sequence[Asked]) -> list[StepWebhook]:
    """Return the webhooks of a waiting step that were not called yet."""
    ruling, _ = rule(step, step_index, When.BEFORE, asked)
    when = When.AFTER if ruling is Ruling.GO else When.BEFORE
    known = {each.name for each in asked if each.step_index == step_index}
    return [webhook for webhook in step.webhooks if webhook.when is when and webhook.name not in known]


def read_answer(status: int | None, text: str) -> tuple[Answer, str]:
    """Return the answer and its message.

    Args:
        status: the HTTP status; None where no answer came, and `text` then says why.
    """
    if status is None:
        return Answer.UNAVAILABLE, _plain(text)
    if status != 200:
        return Answer.UNAVAILABLE, f"it answered {status}, not 200"
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    verdict = said.get("verdict") if isinstance(said, Mapping) else None
    if verdict not in (Answer.GO.value, Answer.WAIT.value, Answer.NO.value):
        return Answer.UNAVAILABLE, 'it did not answer {"verdict": "go", "wait" or "no"} in at most 1000 bytes of JSON'
    message = said.get("message")
    return Answer(verdict), _plain(message) if isinstance(message, str) else ""


def ask_again_after(tries: int) -> timedelta:
    """Return the delay of the next call after `tries` undecided answers (exponential back-off)."""
    return min(_LAST_AGAIN, _FIRST_AGAIN * (1 << min(tries - 1, 10)))


def _sentence(asked: Iterable[Asked]) -> str:
    return "; ".join(_one(each) for each in asked)


def _one(asked: Asked) -> str:
    if not asked.tries:
        return f"webhook {asked.name} was not asked yet"
    said = {
        Answer.NO: "said no",
        Answer.GO: "said go",
        Answer.WAIT: "says wait",
        Answer.UNAVAILABLE: "gave no answer that counts",
    }[asked.answer]
    return f"webhook {asked.name} {said}" + (f": {asked.message}" if asked.message else "")


def _plain(text: str) -> str:
    """Return a foreign text as one short line."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line if len(line) <= _MAX_MESSAGE else f"{line[: _MAX_MESSAGE - 1]}\N{HORIZONTAL ELLIPSIS}"
