"""Kept answers as a participant of the reconciler: keeps a share of what taps recorded since the last turn.

Rows are written in the turn's transaction, together with the taps' cursor: after a failure before that the next turn
reads the same payloads again. A turn of a service that keeps nothing has no query for it.
"""

import json
from collections.abc import Iterator, Sequence
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

Key = tuple[str, str]
"""Request id and revision."""


@dataclass(frozen=True, slots=True)
class Found:
    """Answers to keep, in the order of their requests, not saved yet.

    Attributes:
        left_out: how many further ones are beyond a limit.
    """

    kept: Kept
    answers: Sequence[Answer]
    left_out: int


class Answers(Participant[Found | None]):
    """Keeps answers of a service's stable and canary."""

    def collect(self, turn: Turn) -> Found | None:
        """Return the answers to keep; None where none are.

        Only turns insert answers, and one at a time has the service: those that have a row now are not read again.
        """
        if not turn.service.kept_percent:
            return None
        exchanges = turn.found(TAPS).exchanges
        kept = kept_of(turn.service.pk) if exchanges else None
        if kept is None:
            return None
        versions = {row.name: row.model_version.number for row in turn.read.revisions}
        wanted: dict[Key, Exchange] = {}
        for each in exchanges:
            if each.revision in versions and _belongs(each, kept):
                wanted.setdefault((each.request_id, each.revision), each)
        for key in _kept_already(kept.service_id, list(wanted)):
            wanted.pop(key, None)
        made = (_answer(each, kept, versions[each.revision], turn.now) for each in wanted.values())
        answers = list(_within(made, kept))
        return Found(kept, answers, len(wanted) - len(answers)) if wanted else None

    def record(self, change: Change, found: Found | None) -> None:  # noqa: ARG002 - the rows are not the service's
        """Write the answers."""
        if found is None:
            return
        Answer.objects.bulk_create(found.answers, batch_size=_BATCH, ignore_conflicts=True)
        Kept.objects.filter(pk=found.kept.pk).update(
            rows=F("rows") + len(found.answers),
            bytes=F("bytes") + sum(each.bytes for each in found.answers),
            left_out=F("left_out") + found.left_out,
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


def _kept_already(service_id: int, keys: Sequence[Key]) -> Iterator[Key]:
    """Yield which of these answers, and others to the same requests, have a row."""
    for start in range(0, len(keys), _BATCH):
        ids = {request_id for request_id, _ in keys[start : start + _BATCH]}
        rows = Answer.objects.filter(service=service_id, request_id__in=ids)
        yield from rows.values_list("request_id", "revision")


def _within(answers: Iterator[Answer], kept: Kept) -> Iterator[Answer]:
    """Yield answers up to the first that is beyond a limit; the others are not even made."""
    rows, size = kept.rows, kept.bytes
    while rows < kept.max_rows and size + _ROW_BYTES <= kept.max_bytes:
        each = next(answers, None)
        if each is None or size + each.bytes > kept.max_bytes:
            return
        rows, size = rows + 1, size + each.bytes
        yield each
