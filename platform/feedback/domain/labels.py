"""Labels as callers send them: which are taken, and what a file's text says."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from common.errors import InvalidInput

MOST_LABELS = 10_000
"""Of one JSON document."""
MOST_ROWS = 100_000
"""Of one body in any other form."""
LONGEST_ID = 128
LONGEST_TEXT = 256
MOST_VALUES = 64
"""Rows of a request that have labels; as many rows of an answer are kept."""
_MOST_NUMBER = 1e300
_AHEAD = timedelta(minutes=1)
"""How far the clock of a sender may be ahead."""
_FIELDS = ("request_id", "value", "given_at")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d{1,3})?", re.ASCII)
_NO_NUMBERS = {"nan", "inf", "infinity", "+inf", "+infinity", "-inf", "-infinity", "-nan", "+nan"}


@dataclass(frozen=True, slots=True)
class NewLabel:
    """One label of a batch; `given_at` is None where its sender does not say it."""

    request_id: str
    value: Any
    given_at: datetime | None


def labels_of(rows: Iterable[object], *, now: datetime, most: int) -> list[NewLabel]:
    """Return the labels of a batch in order; raises InvalidInput with the number of the first row that is not taken."""
    found: list[NewLabel] = []
    for number, row in enumerate(rows, start=1):
        if number > most:
            raise InvalidInput(f"the batch has more than {most:,} labels; send them in several", field="labels")
        try:
            found.append(_label(row, now))
        except InvalidInput as error:
            raise InvalidInput(
                f"row {number}: {error.message}; nothing of the batch was taken", field="labels"
            ) from error
    return found


def cell_value(text: str) -> Any:
    """Return the value of a cell of CSV: a number, a list in JSON's form, or else the text itself."""
    text = text.strip()
    if not text:
        raise InvalidInput("value is empty; expected a number, a text or a list")
    if text.lower() in _NO_NUMBERS:
        raise InvalidInput(f"value is {text}; expected a finite number or a text")
    if _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdigit() and len(text) <= 16 else float(text)
    if text.startswith("["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"value is {text[:60]!r}, which begins as a list and is none in JSON's form") from error
    return text


def check_columns(columns: Iterable[object], form: str) -> None:
    """Raise InvalidInput where a file lacks a column or has one that no label has."""
    found = [str(each) for each in columns]
    for name in _FIELDS[:2]:
        if name not in found:
            shown = ", ".join(found)[:200] or "none"
            raise InvalidInput(f"the {form} has no column {name}; its columns are {shown}", field="labels")
    for name in found:
        if name not in _FIELDS or found.count(name) > 1:
            what = "twice" if name in _FIELDS else "which no label has"
            raise InvalidInput(
                f"the {form} has the column {name[:60]!r} {what}; expected {', '.join(_FIELDS)}", field="labels"
            )


def _label(row: object, now: datetime) -> NewLabel:
    if not isinstance(row, Mapping):
        raise InvalidInput(f"it is {str(row)[:60]!r}; expected an object of {', '.join(_FIELDS)}")
    for name in row:
        if name not in _FIELDS:
            raise InvalidInput(f"{str(name)[:60]} is not a field of a label; expected {', '.join(_FIELDS)}")
    request_id = row.get("request_id")
    if not isinstance(request_id, str) or not 0 < len(request_id) <= LONGEST_ID or not request_id.isprintable():
        raise InvalidInput(
            f"request_id is {str(request_id)[:60]!r}; expected 1 to {LONGEST_ID} printable characters, as in the "
            "header x-request-id of the answer"
        )
    if "value" not in row:
        raise InvalidInput("value is missing; expected a number, a text or a list of them")
    value = row["value"]
    if isinstance(value, list):
        if not 0 < len(value) <= MOST_VALUES:
            raise InvalidInput(f"value is a list of {len(value)}; expected 1 to {MOST_VALUES}, one for each row")
        value = [_value(each) for each in value]
    else:
        value = _value(value)
    return NewLabel(request_id, value, _given_at(row.get("given_at"), now))


def _value(value: object) -> Any:
    if isinstance(value, str):
        if len(value) > LONGEST_TEXT or not value or not value.isprintable():
            raise InvalidInput(f"value is the text {value[:60]!r}; expected 1 to {LONGEST_TEXT} printable characters")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidInput(f"value is {str(value)[:60]}; expected a number, a text or a flat list of them")
    if not abs(value) <= _MOST_NUMBER:  # NaN too
        raise InvalidInput("value is not finite or too large; expected a number of at most 1e300")
    return value if isinstance(value, int) and abs(value) <= 2**53 else _plain(float(value))


def _plain(value: float) -> int | float:
    """Return whole numbers as int, so that 3 and 3.0 are one value."""
    return int(value) if value.is_integer() and abs(value) <= 2**53 else value


def _given_at(value: object, now: datetime) -> datetime | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError as error:
            raise InvalidInput(
                f"given_at is {value[:60]!r}; expected a time in ISO 8601, such as 2026-01-31T12:00:00Z"
            ) from error
    if not isinstance(value, datetime):
        raise InvalidInput(f"given_at is {str(value)[:60]!r}; expected a time in ISO 8601")
    try:
        value = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError as error:
        raise InvalidInput("given_at is beyond the years that a time can have") from error
    if value > now + _AHEAD:
        raise InvalidInput(f"given_at is {value:%Y-%m-%d %H:%M} UTC, which is in the future; expected a time up to now")
    return value
