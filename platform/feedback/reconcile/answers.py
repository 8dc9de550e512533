"""Kept answers as a participant of the reconciler: keeps a share of what taps recorded since the last turn.

Rows are written in the turn's transaction, together with the taps' cursor: after a failure before that the next turn
reads the same payloads again. A turn of a service that keeps nothing has no query for it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from django.db.models import F

from deployments.reconcile.participants.taps import TAPS
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from feedback.models import Answer, Kept
from feedback.reconcile.kept_exchange import content_of, is_joinable
from feedback.selectors.answers import kept_of, sealed_values
from integrations.clusters.base import Exchange
from serving_runtime.shared.sampling import is_sampled

_BATCH = 500
_ROW_BYTES = 200
"""About what a row takes beside its texts, in the table and its indexes."""


@dataclass(frozen=True, slots=True)
class Found:
    """Answers to keep, in the order of their requests, not saved yet."""

    kept: Kept
    answers: Sequence[Answer]


class Answers(Participant[Found | None]):
    """Keeps answers of a service's stable and canary."""

    def collect(self, turn: Turn) -> Found | None:
        """Return the answers to keep; None where none are."""
        if not turn.service.kept_percent:
            return None
        exchanges = turn.found(TAPS).exchanges
        kept = kept_of(turn.service.pk) if exchanges else None
        if kept is None:
            return None
        versions = {row.name: row.model_version.number for row in turn.read.revisions}
        wanted = [each for each in exchanges if each.revision in versions and _belongs(each, kept)]
        answers = {}
        for exchange in wanted:
            key = (exchange.request_id, exchange.revision)
            if key not in answers:
                answers[key] = _answer(exchange, kept, versions[exchange.revision], turn.now)
        return Found(kept, list(answers.values())) if answers else None

    def record(self, change: Change, found: Found | None) -> None:  # noqa: ARG002 - the rows are not the service's
        """Write the answers up to the limits, each once."""
        if found is None:
            return
        new = _not_kept(found.answers)
        room = list(_within(new, found.kept))
        Answer.objects.bulk_create(room, batch_size=_BATCH, ignore_conflicts=True)
        if new:
            Kept.objects.filter(pk=found.kept.pk).update(
                rows=F("rows") + len(room),
                bytes=F("bytes") + sum(each.bytes for each in room),
                left_out=F("left_out") + len(new) - len(room),
            )

    def unsettled(self, change: Change) -> bool:
        """Return whether answers are kept."""
        return bool(change.service.kept_percent)


ANSWERS = Answers()


def _belongs(exchange: Exchange, kept: Kept) -> bool:
    return (
        not exchange.error_code
        and exchange.at >= kept.created_at.timestamp()
        and is_joinable(exchange.request_id)
        and is_sampled(exchange.request_id, kept.share_percent / 100)
    )


def _answer(exchange: Exchange, kept: Kept, version: int, now: datetime) -> Answer:
    content = content_of(exchange, kept)
    sealed = sealed_values(content.values)
    texts = (exchange.request_id, exchange.revision, json.dumps(content.top), json.dumps(content.parameters))
    return Answer(
        service_id=kept.service_id,
        request_id=exchange.request_id,
        revision=exchange.revision,
        version=version,
        at=datetime.fromtimestamp(min(exchange.at, now.timestamp()), UTC),  # a clock ahead must not defer its deletion
        top=content.top,
        sealed=sealed,
        parameters=content.parameters,
        bytes=_ROW_BYTES + len(sealed) + sum(map(len, texts)),
    )


def _not_kept(answers: Sequence[Answer]) -> list[Answer]:
    """Return the answers that have no row yet; all rows of a service are made under its row lock."""
    new: list[Answer] = []
    for start in range(0, len(answers), _BATCH):
        batch = answers[start : start + _BATCH]
        ids = [each.request_id for each in batch]
        rows = Answer.objects.filter(service=batch[0].service_id, request_id__in=ids)
        there = set(rows.values_list("request_id", "revision"))
        new += [each for each in batch if (each.request_id, each.revision) not in there]
    return new


def _within(answers: Iterable[Answer], kept: Kept) -> Iterator[Answer]:
    """Yield the answers that are within the limits."""
    rows, size = kept.rows, kept.bytes
    for each in answers:
        if rows < kept.max_rows and size + each.bytes <= kept.max_bytes:
            rows, size = rows + 1, size + each.bytes
            yield each
