"""Audit log export: CSV or JSON lines, oldest first, streamed."""

import json
from collections.abc import Iterable, Iterator
from enum import StrEnum

from accounts.models import AuditEntry
from common.errors import InvalidInput
from common.spreadsheets import csv_line

_AT_ONCE = 500
_COLUMNS = ("id", "at", "actor", "action", "target", "before", "after", "detail", "request_id")


class Format(StrEnum):
    """`csv` for a spreadsheet, `jsonl` with an object in each line."""

    CSV = "csv"
    JSONL = "jsonl"

    @classmethod
    def of(cls, text: str) -> "Format":
        """Return the format of that name; raises InvalidInput."""
        if text not in [*cls]:
            raise InvalidInput(f"format is {text[:40]!r}; expected {' or '.join(cls)}", field="format")
        return cls(text)


def pieces(entries: Iterable[AuditEntry], form: Format) -> Iterator[bytes]:
    """Yield the file some hundred lines at a time."""
    lines = _csv(entries) if form is Format.CSV else (_json(entry) for entry in entries)
    batch: list[str] = []
    for line in lines:
        batch.append(line)
        if len(batch) == _AT_ONCE:
            yield "".join(batch).encode()
            batch = []
    yield "".join(batch).encode()


def _row(entry: AuditEntry) -> dict[str, object]:
    values = {name: getattr(entry, name) for name in _COLUMNS}
    return {**values, "at": entry.at.isoformat()}


def _json(entry: AuditEntry) -> str:
    return json.dumps(_row(entry), ensure_ascii=False) + "\n"


def _csv(entries: Iterable[AuditEntry]) -> Iterator[str]:
    yield csv_line(_COLUMNS)
    for entry in entries:
        yield csv_line(_row(entry).values())
