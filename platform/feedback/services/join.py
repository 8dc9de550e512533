"""Join of labels with answers: scores, and the hours' sums, by batches of due labels.

    label taken --due--> no answer yet: due again, later and later
                 '-----> answers found: scored; due once more while further answers may come, else done

A batch is one transaction, which locks its labels and the scorers of their services: two workers take different
labels, and the sums of a scorer are changed by one at a time. Memory is that of a batch. A new scorer scores the labels
that were joined before it, newest first, when no label is due.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np
from django.db import connection, transaction
from django.db.models import F, Model, QuerySet, TextField
from django.db.models.functions import Cast

from common.errors import FairleadError, InvalidInput
from feedback.domain.scorers import OF_VALUES, KeptAnswer, loss
from feedback.models import Answer, Kept, Label, Score, ServiceScorer
from feedback.selectors.answers import kept_tensor, values_in
from feedback.selectors.scorers import output_of
from feedback.services.score_rows import Hour, ScoreRow, Sums, hours_add, scores_write

M = TypeVar("M", bound=Model)
BATCH = 5_000
_TURN = timedelta(seconds=20)
"""How long one call begins further batches; the next follows within seconds."""
SETTLED = timedelta(seconds=30)
"""Age of a request by which all revisions' answers to it are there."""
_FIRST_WAIT_S, _LONG_WAIT_S, _LONGEST_WAIT_S = 2, 60, 6 * 3600
_OFTEN_FOR_S = 600
_MOST_REASON = 500


class _Due(NamedTuple):
    """A label to join."""

    pk: int
    service_id: int
    request_id: str
    value: Any
    received_at: datetime
    joined_at: datetime | None
    changes: int

    @property
    def may_have_scores(self) -> bool:
        return self.joined_at is not None or self.changes > 0


class _Old(NamedTuple):
    """A score that is there."""

    loss: float
    answered_at: datetime
    labelled_at: datetime


@dataclass(slots=True)
class _Found:
    """What a batch of one service's labels comes to; `newest` has the time of each request's newest answer."""

    newest: dict[str, datetime] = field(default_factory=dict)
    rows: list[ScoreRow] = field(default_factory=list)
    removed: list[tuple[int, str, str]] = field(default_factory=list)
    sums: dict[Hour, Sums] = field(default_factory=dict)
    unscored: dict[int, int] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)

    def hour(self, scorer_id: int, revision: str, answered_at: datetime) -> Sums:
        """Return the sums that the answer's hour gets."""
        key = Hour(scorer_id, revision, answered_at.replace(minute=0, second=0, microsecond=0))  # times are in UTC
        found = self.sums.get(key)
        if found is None:
            found = self.sums[key] = Sums()
        return found

    def remove(self, scorer_id: int, request_id: str, revision: str, before: _Old) -> None:
        """Take a score away whose label changed to one that does not fit."""
        self.removed.append((scorer_id, request_id, revision))
        delay_s = _delay_s(before.answered_at, before.labelled_at)
        self.hour(scorer_id, revision, before.answered_at).add(before.loss, delay_s, times=-1)

    def leave_out(self, scorer: ServiceScorer, label: _Due, message: str) -> None:
        """Count a label that does not fit, once."""
        if label.joined_at is None or scorer.backfill_below is not None:
            self.unscored[scorer.pk] = self.unscored.get(scorer.pk, 0) + 1
            self.reasons[scorer.pk] = f"request {label.request_id}: {message}"[:_MOST_REASON]


def labels_join(*, clock: Callable[[], datetime]) -> int:
    """Join due labels, then score earlier ones for new scorers, for 20 s at most; return the number of both."""
    began, total = clock(), 0
    while (now := clock()) - began < _TURN:
        count = _join_batch(now)
        if count < BATCH:
            backfilled = _backfill_batch(now)
            if backfilled is None:
                return total + count
            count += backfilled
        total += count
    return total


def next_look(age_s: float) -> int:
    """Return in how many seconds a label without an answer is due again, by its age: 2 to 60, later up to hours."""
    if age_s < _OFTEN_FOR_S:
        wait = min(max(age_s, _FIRST_WAIT_S), _LONG_WAIT_S)
    else:
        wait = min(max(age_s / 10, _LONG_WAIT_S), _LONGEST_WAIT_S)
    return 1 << (int(wait).bit_length() - 1) if wait < _LONG_WAIT_S else int(wait) // _LONG_WAIT_S * _LONG_WAIT_S


@transaction.atomic
def _join_batch(now: datetime) -> int:
    _commit_lazily()
    due = Label.objects.select_for_update(skip_locked=True).filter(next_try_at__lte=now).order_by("next_try_at")
    rows = [_Due(*row) for row in due.values_list(*_Due._fields)[:BATCH]]
    rows.sort(key=lambda each: each.service_id)
    for service_id, group in groupby(rows, key=lambda each: each.service_id):
        labels = list(group)
        scorers = ServiceScorer.objects.select_for_update(no_key=True).filter(service=service_id).order_by("pk")
        found = _score(service_id, list(scorers), labels, now)
        _write(found)
        _mark(labels, found, now)
    return len(rows)


@transaction.atomic
def _backfill_batch(now: datetime) -> int | None:
    """Score earlier labels for one scorer and return how many; None where no scorer has any left."""
    _commit_lazily()
    waiting = ServiceScorer.objects.select_for_update(skip_locked=True, no_key=True)
    scorer = waiting.filter(backfill_below__isnull=False).order_by("pk").first()
    if scorer is None or scorer.backfill_below is None:
        return None
    joined = Label.objects.filter(service=scorer.service_id, pk__lt=scorer.backfill_below).exclude(joined_at=None)
    labels = [_Due(*row) for row in joined.order_by("-pk").values_list(*_Due._fields)[:BATCH]]
    _write(_score(scorer.service_id, [scorer], labels, now))
    below = labels[-1].pk if len(labels) == BATCH else None
    ServiceScorer.objects.filter(pk=scorer.pk).update(backfill_below=below)
    return len(labels)


def _score(service_id: int, scorers: Sequence[ServiceScorer], labels: Sequence[_Due], now: datetime) -> _Found:
    found = _Found()
    by_request = {each.request_id: each for each in labels}
    old = _old_scores(scorers, [each.request_id for each in labels if each.may_have_scores])
    outputs = _outputs(service_id, scorers)
    columns = (
        "request_id",
        "revision",
        "at",
        "top_text",
        "parameters_text",
        *(("sealed",) if any(outputs.values()) else ()),
    )
    answers = _one_of(Answer.objects.filter(service=service_id), "request_id", list(by_request)).annotate(
        top_text=Cast("top", TextField()), parameters_text=Cast("parameters", TextField())
    )
    for request_id, revision, at, text, parameters, *sealed in answers.values_list(*columns).iterator(chunk_size=2000):
        label = by_request[request_id]
        top = json.loads(text)
        found.newest[request_id] = max(at, found.newest.get(request_id, at))
        content: dict[str, Any] | None = None
        for scorer in scorers:
            before = old.get((scorer.pk, request_id, revision))
            try:
                values: Sequence[Sequence[float]] = ()
                if outputs[scorer.pk]:
                    content = values_in(bytes(sealed[0])) if content is None else content
                    values = _rows_of(content, outputs[scorer.pk])
                result = loss(scorer.kind, scorer.options, KeptAnswer(top, values), label.value)
            except FairleadError as error:
                found.leave_out(scorer, label, error.message)
                if before is not None:
                    found.remove(scorer.pk, request_id, revision, before)
                continue
            if before is not None and (before.loss, before.labelled_at) == (result, label.received_at):
                continue
            sums = found.hour(scorer.pk, revision, at)
            if before is not None:
                sums.add(before.loss, _delay_s(before.answered_at, before.labelled_at), times=-1)
            sums.add(result, _delay_s(at, label.received_at))
            found.rows.append(ScoreRow(scorer.pk, request_id, revision, at, label.received_at, now, result, parameters))
    return found


def _old_scores(scorers: Sequence[ServiceScorer], ids: Sequence[str]) -> dict[tuple[int, str, str], _Old]:
    if not ids or not scorers:
        return {}
    rows = Score.objects.filter(scorer__in=[each.pk for each in scorers], request_id__in=ids)
    columns = ("scorer_id", "request_id", "revision", "loss", "answered_at", "labelled_at")
    return {(row[0], row[1], row[2]): _Old(*row[3:]) for row in rows.values_list(*columns)}


def _outputs(service_id: int, scorers: Sequence[ServiceScorer]) -> dict[int, str]:
    """Return the output whose values each scorer reads; empty for one that reads none."""
    kept = Kept.objects.filter(service=service_id).first() if any(each.kind in OF_VALUES for each in scorers) else None
    return {
        each.pk: output_of(kept, each.options) if kept is not None and each.kind in OF_VALUES else ""
        for each in scorers
    }


def _rows_of(values: Mapping[str, Any], output: str) -> list[list[float]]:
    """Return the values of an output as rows of its last axis; a single axis is rows of one number."""
    item = values["outputs"].get(output)
    if item is None:
        raise InvalidInput(f"the values of the output {output!r} are not kept of this answer")
    try:
        tensor = kept_tensor(values, "outputs", output) if "parameters" in item else None  # base64; it takes longer
        numbers = np.asarray(item["data"] if tensor is None else tensor.values, dtype=float)
        width = item["shape"][-1] if len(item["shape"]) > 1 else 1
        rows: list[list[float]] = numbers.reshape(-1, width).tolist()
    except (ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"the values of the output {output!r} are no rows of numbers") from error
    return rows


def _delay_s(answered_at: datetime, labelled_at: datetime) -> float:
    return max(0.0, (labelled_at - answered_at).total_seconds())


def _write(found: _Found) -> None:
    if found.rows:
        scores_write(found.rows)
    for scorer_id, request_id, revision in found.removed:
        Score.objects.filter(scorer=scorer_id, request_id=request_id, revision=revision).delete()
    if found.sums:
        hours_add(found.sums)
    for scorer_id, count in found.unscored.items():
        ServiceScorer.objects.filter(pk=scorer_id).update(
            unscored=F("unscored") + count, unscored_reason=found.reasons[scorer_id]
        )


def _mark(labels: Sequence[_Due], found: _Found, now: datetime) -> None:
    """Write when each label was joined and when it is due again, by one statement for each of these times."""
    groups: dict[tuple[bool, int], list[int]] = {}
    for label in labels:
        newest = found.newest.get(label.request_id)
        if newest is not None:
            wait = 0 if newest <= now - SETTLED else int((newest + SETTLED - now).total_seconds()) + 1
        elif label.joined_at is not None:
            wait = 0  # its answers were deleted meanwhile
        else:
            wait = next_look((now - label.received_at).total_seconds())
        groups.setdefault((newest is not None and label.joined_at is None, wait), []).append(label.pk)
    for (is_joined, wait), ids in groups.items():
        due: dict[str, Any] = {"next_try_at": now + timedelta(seconds=wait) if wait else None}
        if is_joined:
            due["joined_at"] = now
        _one_of(Label.objects.all(), "id", ids).update(**due)


def _one_of(rows: QuerySet[M], column: str, values: Sequence[object]) -> QuerySet[M]:
    """Return rows with one of thousands of values; PostgreSQL gets these as one list, which is parsed faster."""
    if connection.vendor == "postgresql":
        place = f'"{rows.model._meta.db_table}"."{column}"'
        return rows.extra(where=[f"{place} = ANY(%s)"], params=[list(values)])  # noqa: S610 - names of this module
    return rows.filter(**{f"{column}__in": values})


def _commit_lazily() -> None:
    """Let a commit return before it is on disk: a batch that a crash undoes is joined again."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")
