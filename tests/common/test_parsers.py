import json
from io import BytesIO

import pytest
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from common.errors import InvalidInput
from common.parsers import MAX_DEPTH, Negotiation, StrictJSONParser


def parse(body: str | bytes) -> object:
    return StrictJSONParser().parse(BytesIO(body.encode() if isinstance(body, str) else body), "application/json", {})


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


def test_a_body_is_read_as_it_stands() -> None:
    document = {"name": "größe 😀", "steps": [{"weight": 10, "pause": None}, []], "env": {"A": "\u007f\n"}}
    assert parse(json.dumps(document)) == document
    assert parse(nested(MAX_DEPTH)) is not None


@pytest.mark.parametrize(
    ("body", "field", "sentence"),
    [
        pytest.param(r'{"a": [1, {"b": "x\u0000y"}]}', "a[1].b", "a[1].b has a text with a zero byte", id="zero byte"),
        pytest.param(r'{"a": "\ud83d"}', "a", "half a surrogate pair", id="half a surrogate pair"),
        pytest.param(r'{"a": {"\u0000": 1}}', "a", "a has a text with a zero byte", id="zero byte in a field's name"),
        pytest.param(r'["\u0000"]', "[0]", "[0] has a text", id="in a list"),
        pytest.param(r'"\u0000"', None, "the body has a text", id="nothing but a text"),
        pytest.param(nested(MAX_DEPTH + 1), None, "nested more than 64 deep", id="nested a bit too deeply"),
        pytest.param(nested(100_000), None, "nested more than 64 deep", id="nested beyond what Python reads"),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(body: str, field: str | None, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(body)
    assert sentence in caught.value.message
    assert caught.value.field == field


@pytest.mark.parametrize("body", [b"{", b'{"a": NaN}', b'"\xff"', b"9" * 5000], ids=["half", "NaN", "no UTF-8", "long"])
def test_what_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(ParseError):
        parse(body)


@pytest.mark.parametrize(
    ("content_type", "sentence"),
    [
        pytest.param("application/yaml", "the content type is 'application/yaml'; send the body as", id="another"),
        pytest.param("", "the content type is missing; send the body as application/json", id="none"),
    ],
)
def test_a_body_of_another_type_is_told_which_one_is_taken(content_type: str, sentence: str) -> None:
    request = Request(APIRequestFactory().generic("PUT", "/", "a: 1", content_type=content_type))
    with pytest.raises(UnsupportedMediaType, match=sentence):
        Negotiation().select_parser(request, [JSONParser()])
