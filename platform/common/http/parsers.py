"""Request body parsers, JSON or YAML, which refuse values that storage behind the API cannot hold.

PostgreSQL stores no zero byte in JSON and an environment variable carries none, UTF-8 has no half of a surrogate pair,
and deep nesting exhausts Python's stack wherever the value is copied, compared or written.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import yaml
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.request import Request

from common.errors import InvalidInput
from common.files import yaml_text

MAX_DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


class StrictJSONParser(JSONParser):
    """DRF's parser with those refusals."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Return the parsed body; raises ParseError where it is not JSON, and InvalidInput."""
        try:
            document = super().parse(stream, media_type=media_type, parser_context=parser_context)
        except RecursionError as error:
            raise _too_deep() from error
        check(document)
        return document


class YAMLParser(BaseParser):
    """One document of YAML with JSON's data types (`common.files.yaml_text`)."""

    media_type = "application/yaml"

    def parse(
        self,
        stream: Any,
        media_type: str | None = None,  # noqa: ARG002 - DRF's signature
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Any:
        """Return the parsed body; raises InvalidInput, which names the line of the error."""
        try:
            document = yaml_text.load(stream.read().decode())
        except UnicodeDecodeError as error:
            raise InvalidInput("the body is no YAML: it is no UTF-8") from error
        except yaml.MarkedYAMLError as error:
            where = "" if error.problem_mark is None else f"line {error.problem_mark.line + 1}: "
            raise InvalidInput(f"the body is no YAML that is taken: {where}{error.problem or error.context}") from error
        except yaml.YAMLError as error:
            raise InvalidInput(f"the body is no YAML: {str(error).splitlines()[0]}") from error
        check(document)
        return document


class Negotiation(DefaultContentNegotiation):
    """DRF's choice of a parser, with an error that names the accepted types."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser:
        """Return the parser for the body; raises UnsupportedMediaType."""
        parser: BaseParser | None = super().select_parser(request, parsers)
        if parser is None:
            taken = " or ".join(str(parser.media_type) for parser in parsers)
            said = f"is {request.content_type[:100]!r}" if request.content_type else "is missing"
            raise UnsupportedMediaType(request.content_type, f"the content type {said}; send the body as {taken}")
        return parser


def check(document: object) -> None:
    """Raise InvalidInput where `document` is nested too deeply or a text in it cannot be stored."""
    waiting = [(document, "", 1)]
    while waiting:
        value, path, depth = waiting.pop()
        if isinstance(value, str):
            if not _can_be_kept(value):
                raise InvalidInput(
                    f"{path or 'the body'} has a text with a zero byte or half a surrogate pair; write it without",
                    field=path or None,
                )
        elif isinstance(value, list | dict):
            if depth > MAX_DEPTH:
                raise _too_deep()
            waiting += ((inner, inner_path, depth + 1) for inner, inner_path in _inside(value, path))


def _inside(value: list[Any] | dict[Any, Any], path: str) -> Iterator[tuple[object, str]]:
    """Yield the values in `value` with their dotted paths; names of fields are texts too."""
    if isinstance(value, list):
        yield from ((item, f"{path}[{index}]") for index, item in enumerate(value))
        return
    for key, item in value.items():
        if not isinstance(key, str):  # YAML has them, JSON has not
            where = f" in {path}" if path else ""
            raise InvalidInput(f"the field {str(key)[:60]}{where} is no text; put quotes around it", field=path or None)
        yield key, path
        yield item, f"{path}.{key}" if path else key


def _can_be_kept(text: str) -> bool:
    return "\0" not in text and not _SURROGATE.search(text)


def _too_deep() -> InvalidInput:
    return InvalidInput(f"the body is nested more than {MAX_DEPTH} deep; send it flatter")
