"""Quality gate in the policy file: the right answers that come for a canary's requests later. Pure."""

import re
from dataclasses import dataclass
from datetime import timedelta

from common import durations
from common.errors import InvalidInput
from common.files.document import Document
from common.identifiers import check_dns_label

LEAST_LABELS, MOST_LABELS = 1, 100_000_000
_LARGEST = 1e12
_PARAMETER = re.compile(r"[A-Za-z0-9_.-]{1,100}\Z")


@dataclass(frozen=True, slots=True)
class Quality:
    """How much worse than stable's the canary's answers may be by a scorer of the service.

    Attributes:
        max_worse: in the scorer's unit, such as percentage points of wrong answers.
        min_labels: labelled answers of the canary that a verdict of Successful needs.
        deadline: from the canary's first request, while only quality is undecided; None for the gate's.
        slices: a request parameter, each of whose values must keep the limit too; empty for none.
    """

    scorer: str
    max_worse: float
    min_labels: int = 200
    deadline: timedelta | None = None
    slices: str = ""


def parse_quality(document: Document) -> Quality:
    """Return the `quality` of an `analysis`; raise InvalidInput with the name of the field at fault."""
    is_limited = document.raw("deadline", None) is not None
    quality = Quality(
        scorer=document.text("scorer", check=check_dns_label, default=None),
        max_worse=document.number("maxWorse", minimum=0, maximum=_LARGEST),
        min_labels=document.integer("minLabels", minimum=LEAST_LABELS, maximum=MOST_LABELS, default=200),
        deadline=document.duration("deadline", default=timedelta(minutes=5), positive=True) if is_limited else None,
        slices=document.text("slices", check=_parameter, default=""),
    )
    document.refuse_unknown()
    return quality


def _parameter(value: str, *, field: str) -> str:
    if value and not _PARAMETER.match(value):
        raise InvalidInput(
            f"{field} is {value[:60]!r}; expected the name of a request parameter: letters, digits, '_', '.' and '-'",
            field=field,
        )
    return value


def quality_json(quality: Quality) -> dict[str, object]:
    """Return the `quality` of an `analysis`, defaults filled in."""
    return {
        "scorer": quality.scorer,
        "maxWorse": quality.max_worse,
        "minLabels": quality.min_labels,
        **({} if quality.deadline is None else {"deadline": durations.render(quality.deadline)}),
        **({"slices": quality.slices} if quality.slices else {}),
    }
