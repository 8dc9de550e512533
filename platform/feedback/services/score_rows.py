"""Scores and hourly sums, written by one statement for thousands of rows.

Models would take four times as long: joining a million labels is bound by these writes.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import F

from feedback.models import HourlyQuality, Score


class ScoreRow(NamedTuple):
    """A row of `feedback.models.Score`."""

    scorer_id: int
    request_id: str
    revision: str
    answered_at: datetime
    labelled_at: datetime
    scored_at: datetime
    loss: float
    parameters: Mapping[str, str]


class Hour(NamedTuple):
    """The key of a row of `feedback.models.HourlyQuality`."""

    scorer_id: int
    revision: str
    hour: datetime


class Sums:
    """What is added to the sums of an hour; negative where scores were replaced or removed."""

    __slots__ = ("delay_s", "loss", "scores", "squares")

    def __init__(self) -> None:
        self.scores = 0
        self.loss = self.squares = self.delay_s = 0.0

    def add(self, loss: float, delay_s: float, times: int = 1) -> None:
        """Add a score; with `times` -1, take one away."""
        self.scores += times
        self.loss += times * loss
        self.squares += times * loss * loss
        self.delay_s += times * delay_s


_SCORE = ("bigint", "text", "text", "timestamptz", "timestamptz", "timestamptz", "float8", "jsonb")
_HOUR = ("bigint", "text", "timestamptz", "int", "float8", "float8", "float8")
_IN_LISTS = {"jsonb": "text"}
_REPLACED = ("answered_at", "labelled_at", "scored_at", "loss", "parameters")
_SUMS = ("scores", "loss", "squares", "delay_s")


def scores_write(rows: Sequence[ScoreRow]) -> None:
    """Store scores; one that is there is replaced."""
    texts: dict[str, str] = {}
    _insert(
        Score._meta.db_table,
        dict(zip(ScoreRow._fields, _SCORE, strict=True)),
        "(scorer_id, request_id, revision) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in _REPLACED),
        ((*row[:7], _json(row.parameters, texts)) for row in rows),
    )


def hours_add(sums: Mapping[Hour, Sums]) -> None:
    """Add to the sums of hours, in one order, so that two transactions do not wait for each other."""
    added, removed = [], []
    for hour, its in sorted(sums.items()):
        # An hour's count is never negative, and PostgreSQL checks that before it finds the hour that is there.
        (removed if its.scores < 0 else added).append((hour, its))
    table = HourlyQuality._meta.db_table
    _insert(
        table,
        dict(zip((*Hour._fields, *_SUMS), _HOUR, strict=True)),
        "(scorer_id, revision, hour) DO UPDATE SET "
        + ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in _SUMS),
        ((*hour, its.scores, its.loss, its.squares, its.delay_s) for hour, its in added),
    )
    for hour, its in removed:
        HourlyQuality.objects.filter(**hour._asdict()).update(**{name: F(name) + getattr(its, name) for name in _SUMS})


def _insert(table: str, columns: Mapping[str, str], conflict: str, values: Iterable[Sequence[Any]]) -> None:
    """Run one INSERT: on PostgreSQL from a list for each column, on SQLite for one row after the other.

    Args:
        columns: PostgreSQL's types by names. Names and `conflict` are constants of this module.
    """
    names = ", ".join(columns)
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            marks = ", ".join("%s" for _ in columns)
            adapted = ([_adapted(value) for value in row] for row in values)
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks}) ON CONFLICT {conflict}", adapted)  # noqa: S608
        elif lists := [list(column) for column in zip(*values, strict=True)]:
            selected = ", ".join(f"{name}::{kind}" for name, kind in columns.items())
            source = ", ".join(f"%s::{_IN_LISTS.get(kind, kind)}[]" for kind in columns.values())
            cursor.execute(
                f"INSERT INTO {table} ({names}) SELECT {selected} FROM unnest({source}) AS given ({names}) "  # noqa: S608
                f"ON CONFLICT {conflict}",
                lists,
            )


def _adapted(value: Any) -> Any:
    return connection.ops.adapt_datetimefield_value(value) if isinstance(value, datetime) else value


def _json(parameters: Mapping[str, str], texts: dict[str, str]) -> str:
    """Return parameters as JSON; equal ones, which are most, are written once."""
    key = str(parameters) if parameters else ""
    if key not in texts:
        texts[key] = json.dumps(parameters)
    return texts[key]
