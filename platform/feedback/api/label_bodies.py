"""Parsers of bodies with labels: JSON, CSV, lines of JSON, Parquet. Each returns rows, which are not checked yet."""

import csv
import io
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from django.core.exceptions import RequestDataTooBig
from django.http import UnreadablePostError
from rest_framework.parsers import BaseParser

from common.errors import InvalidInput, TooLarge
from common.http.asgi import allow_body
from common.labels import cell_value, check_columns
from feedback.api.parquet_labels import parquet_rows

MAX_BYTES = 25 << 20
Rows = Iterator[object]


class LabelParser(BaseParser, ABC):
    """Base of the parsers: reads a body of up to 25 MiB."""

    def parse(  # type: ignore[override] # rows instead of a mapping
        self,
        stream: Any,
        media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Rows:
        """Return the rows of the body.

        Raises:
            TooLarge: it has more than 25 MiB.
            InvalidInput: it is not of the form; errors of later rows are raised while they are read.
        """
        allow_body(stream, MAX_BYTES)
        try:
            content = stream.read(MAX_BYTES + 1)
        except RequestDataTooBig as error:
            raise _too_large() from error
        except UnreadablePostError as error:
            raise InvalidInput(f"the body could not be read to its end: {error}") from error
        if len(content) > MAX_BYTES:
            raise _too_large()
        return self.rows(content)

    @abstractmethod
    def rows(self, content: bytes) -> Rows:
        """Return the rows of a body."""


class JSONLabels(LabelParser):
    media_type = "application/json"

    def rows(self, content: bytes) -> Rows:
        """Return the entries of `labels`."""
        document = _loads(content, "the body")
        if not isinstance(document, dict) or not isinstance(document.get("labels"), list):
            raise InvalidInput('the body has no list "labels"; send {"labels": [{"request_id": …, "value": …}]}')
        if unknown := sorted(document.keys() - {"labels"}):
            raise InvalidInput(f"{unknown[0][:60]} is not a field here; expected labels", field=unknown[0][:60])
        return iter(document["labels"])


class CSVLabels(LabelParser):
    media_type = "text/csv"

    def rows(self, content: bytes) -> Rows:
        """Return a row for each line after the names of the columns."""
        lines = csv.reader(io.StringIO(_text(content), newline=""), strict=True)
        try:
            columns = [name.strip() for name in next(lines, [])]
        except csv.Error as error:
            _refuse_csv(lines.line_num, error)
        check_columns(columns, "CSV")
        return self._rows(lines, columns)

    @staticmethod
    def _rows(lines: Any, columns: list[str]) -> Rows:
        while True:
            try:
                cells = next(lines, None)
            except csv.Error as error:
                _refuse_csv(lines.line_num, error)
            if cells is None:
                return
            if not cells:
                continue
            if len(cells) != len(columns):
                raise InvalidInput(
                    f"line {lines.line_num} of the CSV has {len(cells)} cells, and there are {len(columns)} columns; "
                    "put texts with commas in quotes",
                    field="labels",
                )
            row: dict[str, Any] = dict(zip(columns, cells, strict=True))
            try:
                row["value"] = cell_value(row["value"])
            except InvalidInput as error:
                raise InvalidInput(f"line {lines.line_num} of the CSV: {error.message}", field="labels") from error
            yield row


class LinesOfJSON(LabelParser):
    media_type = "application/x-ndjson"

    def rows(self, content: bytes) -> Rows:
        """Return the object of each line that is not empty."""
        for number, line in enumerate(io.BytesIO(content), start=1):
            if line.strip():
                yield _loads(line, f"line {number}")


class ParquetLabels(LabelParser):
    media_type = "application/vnd.apache.parquet"

    def rows(self, content: bytes) -> Rows:
        """Return the rows of the file."""
        return parquet_rows(content)


PARSERS = [JSONLabels, CSVLabels, LinesOfJSON, ParquetLabels]


def _loads(content: bytes, what: str) -> object:
    try:
        return json.loads(content, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{what} is no JSON: it is no UTF-8", field="labels") from error
    except RecursionError as error:
        raise InvalidInput(f"{what} is nested too deeply; a label is a flat object", field="labels") from error
    except ValueError as error:
        raise InvalidInput(f"{what} is no JSON: {error}", field="labels") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON; expected a finite number or a text")


def _refuse_csv(line: int, error: csv.Error) -> NoReturn:
    raise InvalidInput(f"line {line} of the CSV cannot be read: {error}", field="labels") from error


def _text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the body is no UTF-8: {error.reason} at byte {error.start}", field="labels") from error


def _too_large() -> TooLarge:
    return TooLarge(f"the body has more than the {MAX_BYTES >> 20} MiB that are taken at once; send it in several")
