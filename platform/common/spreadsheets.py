"""CSV lines for spreadsheets, which evaluate cells that look like formulas (CSV injection)."""

import csv
import io
import json
from collections.abc import Iterable

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_line(values: Iterable[object]) -> str:
    """Return one line (RFC 4180). Text that begins as a formula gets an apostrophe; None is an empty cell."""
    line = io.StringIO()
    csv.writer(line).writerow([_cell(value) for value in values])
    return line.getvalue()


def _cell(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"'{text}" if text.startswith(_FORMULA) else text
