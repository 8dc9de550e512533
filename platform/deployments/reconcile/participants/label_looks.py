"""Looks at the labelled answers of a step's gate. Called by `evidence`, outside of any transaction.

A tick that crashes before its write leaves the watch as it was, and the next one asks again: each label counts once.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from deployments import hooks
from deployments.domain.analysis.evidence import label_watch, ledger
from deployments.domain.analysis.evidence.label_watch import Watch
from deployments.domain.analysis.evidence.labelled import Answered, Asked, Habits
from deployments.domain.analysis.evidence.ledger import Ledger
from deployments.domain.policy import Quality
from deployments.models import Rollout

NOT_INSTALLED = "this installation takes no labels, so quality cannot be judged; remove quality from the policy"


@dataclass(frozen=True, slots=True)
class Sought:
    """Whose labelled answers are looked at.

    Attributes:
        is_paired: both sides answer the same requests.
    """

    service_id: int
    canary: str
    stable: str
    is_paired: bool


def sought_of(rollout: Rollout, *, is_paired: bool) -> Sought:
    """Return whose labelled answers a rollout's gate looks at."""
    return Sought(rollout.service_id, rollout.to_revision.name, rollout.from_revision.name, is_paired)


def look_at_labels(known: Ledger, quality: Quality, sought: Sought, began: float, now: float) -> Ledger:
    """Return the ledger after the blocks of labelled answers that can be closed now.

    Args:
        began: when the step began, in Unix seconds.
    """
    watch = known.labels.get(quality.scorer) or label_watch.begin(began)
    if watch.habits is None:
        watch = label_watch.with_habits(watch, habits_of(sought.service_id, quality, sought.stable, watch.began))
    known = ledger.take_labels(known, quality, watch, None)
    for span, ready in list(label_watch.open_spans(watch, now, is_paired=sought.is_paired)):
        assert watch.habits is not None  # noqa: S101 - else there are no spans
        least_canary, least_stable = label_watch.least(is_paired=span.is_paired)
        asked = Asked(
            sought.service_id,
            quality.scorer,
            sought.canary,
            sought.stable,
            span.start,
            ready,
            watch.habits.horizon_s,
            span.is_paired,
            quality.slices,
            watch.habits.values,
            least_canary,
            least_stable,
        )
        watch, block = label_watch.after_look(watch, span, _answered(asked))
        known = ledger.take_labels(known, quality, watch, block)
    watch = replace(label_watch.after_looks(watch, now), now=replace(watch.now, is_paired=sought.is_paired))
    return ledger.take_labels(known, quality, watch, None)


def habits_of(service_id: int, quality: Quality, stable: str, before: float) -> Habits:
    """Return what is known of a service's labels for requests before a time, in Unix seconds."""
    at = datetime.fromtimestamp(before, UTC)
    found = hooks.label_habits(service_id, quality.scorer, stable, at, quality.slices)
    return found[0] if found else Habits(problem=NOT_INSTALLED)


def watch_of(known: Ledger, quality: Quality | None) -> Watch | None:
    """Return the watch of a gate's scorer."""
    return None if quality is None else known.labels.get(quality.scorer)


def _answered(asked: Asked) -> Answered:
    found = hooks.labelled_answers(asked)
    return found[0] if found else Answered(problem=NOT_INSTALLED)
