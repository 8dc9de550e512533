"""Files of labels, read in pieces that one request takes: CSV and lines of JSON. A Parquet file is one piece."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairlead_cli.errors import CliError

MOST_LABELS = 10_000
MOST_BYTES = 8 << 20
"""Of a piece; the control plane takes 25 MiB."""
MOST_PARQUET_BYTES = 25 << 20
_CSV, _LINES, _PARQUET = "text/csv", "application/x-ndjson", "application/vnd.apache.parquet"
_FORMS = {".csv": _CSV, ".jsonl": _LINES, ".ndjson": _LINES, ".parquet": _PARQUET, ".pq": _PARQUET}


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a file, as the body of a request.

    Attributes:
        lines: the first and the last line of it in the file; 0 where the file has no lines.
        read: bytes of the file up to the end of the piece, of `size`.
    """

    content: bytes
    media_type: str
    lines: tuple[int, int]
    read: int
    size: int

    @property
    def place(self) -> str:
        """Return where in the file the piece is."""
        return f"lines {self.lines[0]} to {self.lines[1]}" if self.lines[1] else "the file"


def pieces(path: Path) -> Iterator[Piece]:
    """Yield the pieces of a file, whose form its name's end says.

    Raises:
        CliError: it is not there, or of no form that is taken.
    """
    media_type = _FORMS.get(path.suffix.lower())
    if media_type is None:
        raise CliError(f"{path} is no file of labels by its name; expected {', '.join(_FORMS)} at its end")
    try:
        size = path.stat().st_size
        if media_type == _PARQUET:
            if size > MOST_PARQUET_BYTES:
                raise CliError(
                    f"{path} has {size:,} bytes, and a Parquet file of at most {MOST_PARQUET_BYTES:,} is taken; write "
                    "several smaller ones, or CSV"
                )
            yield Piece(path.read_bytes(), media_type, (0, 0), size, size)
        else:
            yield from _csv(path, size) if media_type == _CSV else _lines(path, size)
    except UnicodeDecodeError as error:
        raise CliError(f"{path} is no UTF-8: {error.reason} at byte {error.start} of a part") from error
    except OSError as error:
        raise CliError(f"{path} cannot be read: {error.strerror}") from error


def _lines(path: Path, size: int) -> Iterator[Piece]:
    taken = bytearray()
    labels, read, first, number = 0, 0, 1, 0
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if taken and (labels >= MOST_LABELS or len(taken) + len(line) > MOST_BYTES):
                yield Piece(bytes(taken), _LINES, (first, number - 1), read, size)
                taken.clear()
                labels, first = 0, number
            taken += line
            read += len(line)
            labels += bool(line.strip())
    if labels:
        yield Piece(bytes(taken), _LINES, (first, number), read, size)


def _csv(path: Path, size: int) -> Iterator[Piece]:
    """Yield parts of a CSV file, each with the names of the columns in its first line."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            columns = next(rows, None)
            if not columns:
                raise CliError(f"{path} is empty; expected the columns request_id and value in its first line")
            part = _Part(columns)
            first = last = rows.line_num + 1
            for row in rows:
                if not row:
                    continue
                if part.is_full:
                    yield Piece(part.content(), _CSV, (first, last), min(size - 1, file.buffer.tell()), size)
                    part, first = _Part(columns), last + 1
                part.add(row)
                last = rows.line_num
        except csv.Error as error:
            raise CliError(f"{path}, line {rows.line_num}: {error}") from error
    if part.labels:
        yield Piece(part.content(), _CSV, (first, last), size, size)


class _Part:
    """Rows of CSV, written again as text."""

    def __init__(self, columns: list[str]) -> None:
        self.labels = 0
        self._text = io.StringIO(newline="")
        self._writer = csv.writer(self._text)
        self._writer.writerow(columns)

    @property
    def is_full(self) -> bool:
        """Return whether the next row is for another part."""
        return self.labels >= MOST_LABELS or self._text.tell() > MOST_BYTES // 2

    def add(self, row: list[str]) -> None:
        """Write one row."""
        self._writer.writerow(row)
        self.labels += 1

    def content(self) -> bytes:
        """Return the part as the body of a request."""
        return self._text.getvalue().encode()
