import json
from io import BytesIO

import pytest
from rest_framework.exceptions import ParseError, UnsupportedMediaType
from rest_framework.parsers import JSONParser
from rest_framework.request import Request
from rest_framework.test import APIRequestFactory

from common.errors import InvalidInput
from common.http.parsers import MAX_DEPTH, Negotiation, StrictJSONParser, YAMLParser


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


def parse_yaml(body: str | bytes) -> object:
    return YAMLParser().parse(BytesIO(body.encode() if isinstance(body, str) else body), "application/yaml", {})


def test_a_body_of_yaml_says_what_json_would() -> None:
    text = "name: größe 😀\nsteps:\n- {weight: 10, pause: ~}\n- []\nmade: 2026-11-25\n"
    assert parse_yaml(text) == {"name": "größe 😀", "steps": [{"weight": 10, "pause": None}, []], "made": "2026-11-25"}
    assert parse_yaml(nested(MAX_DEPTH)) is not None


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        pytest.param("a: b\nc: [", "no YAML that is taken: line 2: expected the node content", id="half"),
        pytest.param("a: 1\n---\nb: 2\n", "line 2: but found another document", id="two documents"),
        pytest.param("a: 1\na: 2\n", "line 2: the field 'a' is there twice", id="twice"),
        pytest.param("a: {1: b}", "the field 1 in a is no text; put quotes around it", id="a number as a name"),
        pytest.param("a: !!python/object/apply:os.system [id]", "line 1: could not determine a constructor", id="code"),
        pytest.param(b"a: \xff", "it is no UTF-8", id="no UTF-8"),
        pytest.param("a: \x07", "special characters are not allowed", id="a control character"),
        pytest.param('a: "\\0"', "a has a text with a zero byte", id="zero byte"),
    ],
)
def test_yaml_that_is_not_taken_is_refused_with_its_line(body: str | bytes, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_yaml(body)
    assert sentence in caught.value.message
