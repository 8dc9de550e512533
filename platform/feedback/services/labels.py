"""Labels of a service: taken in batches, late and in any order, and deleted when their time is over.

A batch is taken whole or not at all. The same label again changes nothing; another value replaces the label, which is
then joined again (`feedback.services.join`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import F, QuerySet

from common.errors import Conflict
from deployments.models import InferenceService
from deployments.services.services import service_named
from feedback.domain.labels import NewLabel
from feedback.models import Kept, Label, Score

KEPT_FOR = timedelta(days=30)
"""Of labels and scores of a service that keeps no answers."""
_PIECE = 5_000
"""Rows of one statement; SQLite takes 32,766 parameters."""
_REPLACED = ("value", "given_at", "given_by", "received_at", "changes", "joined_at", "next_try_at")


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a batch: of `received` labels, `changed` replaced another value, `repeated` were there already."""

    received: int
    changed: int
    repeated: int


@transaction.atomic
def labels_take(*, namespace: str, name: str, labels: Sequence[NewLabel], actor: str, now: datetime) -> Taken:
    """Store a batch of labels; of two for one request the last counts.

    Raises:
        NotFound: no such service.
        Conflict: it is being deleted.
    """
    service = service_named(namespace, name)
    if service.deleting_at is not None:
        raise Conflict(f"service {service} is being deleted, so no labels are taken for it")
    last = {each.request_id: each for each in labels}
    changed, repeated = _within(labels)
    for ids in _pieces(sorted(last)):  # in one order, so that two batches wait for each other instead of dying
        present = {
            request_id: (value, changes)
            for request_id, value, changes in Label.objects.select_for_update()
            .filter(service=service, request_id__in=ids)
            .order_by("request_id")
            .values_list("request_id", "value", "changes")
        }
        rows = []
        for request_id in ids:
            label = last[request_id]
            before = present.get(request_id)
            if before is not None and before[0] == label.value:
                repeated += 1
                continue
            changed += before is not None
            rows.append(
                Label(
                    service=service,
                    request_id=request_id,
                    value=label.value,
                    given_at=label.given_at or now,
                    given_by=actor,
                    received_at=now,
                    changes=0 if before is None else before[1] + 1,
                    next_try_at=now,
                )
            )
        Label.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["service", "request_id"], update_fields=_REPLACED
        )
    return Taken(len(labels), changed, repeated)


def labels_forget(*, now: datetime) -> int:
    """Delete labels and scores whose time is over, in pieces, and return the number of labels.

    Labels that never found an answer are counted in `Kept.unmatched`.
    """
    deleted = 0
    for service, kept in _services():
        before = now - (KEPT_FOR if kept is None else timedelta(days=kept.days))
        old = Label.objects.filter(service=service, received_at__lt=before)
        deleted += _forget_waiting(old.filter(joined_at=None), kept)
        deleted += _delete(old.exclude(joined_at=None))
        for scorer in service.scorers.all():
            _delete(Score.objects.filter(scorer=scorer, answered_at__lt=before))
    return deleted


def _within(labels: Sequence[NewLabel]) -> tuple[int, int]:
    """Return how many labels of a batch change and repeat an earlier one of the same batch."""
    seen: dict[str, object] = {}
    changed = repeated = 0
    for label in labels:
        if label.request_id in seen:
            is_same = seen[label.request_id] == label.value
            changed, repeated = changed + (not is_same), repeated + is_same
        seen[label.request_id] = label.value
    return changed, repeated


def _services() -> list[tuple[InferenceService, Kept | None]]:
    found = InferenceService.objects.select_related("kept").prefetch_related("scorers")
    return [(service, getattr(service, "kept", None)) for service in found]


def _forget_waiting(waiting: QuerySet[Label], kept: Kept | None) -> int:
    deleted = 0
    while True:
        with transaction.atomic():
            count, _ = Label.objects.filter(pk__in=list(waiting.values_list("pk", flat=True)[:_PIECE])).delete()
            if kept is not None and count:
                Kept.objects.filter(pk=kept.pk).update(unmatched=F("unmatched") + count)
        deleted += count
        if count < _PIECE:
            return deleted


def _delete(rows: QuerySet[Label] | QuerySet[Score]) -> int:
    deleted = 0
    while True:
        count, _ = rows.model.objects.filter(pk__in=list(rows.values_list("pk", flat=True)[:_PIECE])).delete()
        deleted += count
        if count < _PIECE:
            return deleted


def _pieces(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(ids), _PIECE):
        yield ids[begin : begin + _PIECE]
