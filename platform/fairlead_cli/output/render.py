"""Output rendering: columns for people, JSON for programs. Untrusted text never reaches the terminal raw."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Cell = str | Callable[[Mapping[str, Any]], object]
Columns = Mapping[str, Cell]

_UNITS = ((86_400, "day"), (3600, "hour"), (60, "minute"))
# A timestamp as the API writes it, and nothing else in the text: people need no microseconds.
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.\d+Z")


def clean(value: object) -> str:
    """Return `value` as one line of printable text; control characters of terminals become `?`."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(clean(item) for item in value) or "-"
    if isinstance(value, Mapping):
        return ", ".join(map(clean, pairs(value))) or "-"
    if isinstance(value, str) and (moment := _MOMENT.fullmatch(value)):
        return f"{moment[1]}Z"
    text = str(value).replace("\n", " ").replace("\t", " ")
    return "".join(character if character.isprintable() else "?" for character in text) or "-"


def cell(row: Mapping[str, Any], column: Cell) -> str:
    """Return one cell: a key of the row (`a.b` goes into objects) or a function of the row."""
    if callable(column):
        return clean(column(row))
    value: Any = row
    for key in column.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return clean(value)


def table(rows: Sequence[Mapping[str, Any]], columns: Columns) -> str:
    """Return the rows under upper-case headings, each column as wide as it needs to be."""
    lines = [[heading.upper() for heading in columns]]
    lines += [[cell(row, column) for column in columns.values()] for row in rows]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return "\n".join(
        "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def facts(row: Mapping[str, Any], columns: Columns) -> str:
    """Return one object as `name  value` lines."""
    width = max(len(name) for name in columns)
    return "\n".join(f"{name.ljust(width)}  {cell(row, column)}" for name, column in columns.items())


def as_json(value: object) -> str:
    """Return JSON that is the same for the same value."""
    return json.dumps(value, indent=2, sort_keys=True)


def size(count: int | None) -> str:
    """Format a number of bytes for people."""
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def pairs(values: Mapping[str, Any] | None) -> list[str]:
    """Return a mapping as `key=value` texts."""
    return [f"{key}={value}" for key, value in (values or {}).items()]


def since(moment: str, now: datetime | None = None) -> str:
    """Return a past timestamp of the API with its age: `2026-01-01T12:00:00Z (3 minutes ago)`."""
    seconds = int(((now or datetime.now(UTC)) - datetime.fromisoformat(moment)).total_seconds())
    size, unit = next((pair for pair in _UNITS if seconds >= pair[0]), (1, "second"))
    count = max(0, seconds) // size
    return f"{clean(moment)} ({count} {unit}{'' if count == 1 else 's'} ago)"


def percent(value: float | None) -> str:
    """Return a percentage with at most one decimal; `-` for None."""
    return "-" if value is None else f"{value:.1f} %".replace(".0 %", " %")


def tensor(spec: Mapping[str, Any]) -> str:
    """Return a tensor's name, datatype and shape such as `pixels FP32[-1,64]`, and whether it is optional."""
    shape = ",".join(str(size) for size in spec.get("shape", ()))
    return f"{spec.get('name')} {spec.get('datatype')}[{shape}]{' (optional)' if spec.get('optional') else ''}"
