"""Usage as CSV."""

from collections.abc import Iterable, Iterator

from common.spreadsheets import csv_line
from usage.domain.report import Line

COLUMNS = ("requests", "errors", "rows", "bytes_in", "bytes_out", "model_seconds", "cost")


def csv_pieces(lines: Iterable[Line], by: tuple[str, ...], currency: str) -> Iterator[bytes]:
    """Yield the file with its header, a line at a time; a cost that is not known is an empty cell."""
    yield csv_line([*by, *COLUMNS, "currency"]).encode()
    for line in lines:
        cost = None if line.cost is None or not currency else round(line.cost, 6)
        figures = [*(getattr(line, name) for name in COLUMNS[:-1]), cost]
        yield csv_line([*line.group, *figures, currency]).encode()
