"""JSON request bodies: parsing, and refusal beforehand of texts that would take far more memory than their bytes."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import orjson

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.protocol.http.codec import json_parser

_LARGE_BYTES = 64 * 1024
"""Shorter texts cannot become large enough to matter."""

_MAX_CONTAINERS = 1_000_000
"""Arrays and objects in one body: an empty array is two bytes in JSON, but over fifty as an object in memory."""

_MAX_OBJECTS = 128 * 1024
"""Objects among them; a row of V1 may be one."""

_MAX_MEMBERS = 1_000_000
"""Members of all objects together."""

_COMMAS_BESIDE = 64 * 1024
"""Commas in an infer request beside those between the elements of its tensors."""

_OPENING, _BRACE, _COLON, _COMMA, _QUOTE = b'[{:,"'
_CASE = np.uint8(_BRACE - _OPENING)
"""The bit that turns an opening bracket into an opening brace."""

_NAMES = {_OPENING: "arrays and objects; send data flat", _BRACE: "objects; send fewer", _COLON: "members; send fewer"}
_CHUNK_BYTES = 1024 * 1024


def json_object(text: bytes | memoryview, most_objects: int = _MAX_OBJECTS) -> dict[str, Any]:
    """Return the object; raises InvalidArgument for anything else, and for one with too many objects in it."""
    loads: Callable[[bytes | memoryview], Any] = orjson.loads
    if len(text) > _LARGE_BYTES:
        text = bytes(text)
        _check_counts(text, most_objects)
        if len(text) > json_parser.PIECE_BYTES:
            loads = json_parser.loads
    try:
        content = loads(text)
    except (orjson.JSONDecodeError, json_parser.MalformedError) as error:
        raise InvalidArgument(f"the request is not valid JSON: {error}") from error
    if type(content) is not dict:
        raise InvalidArgument("the request must be a JSON object")
    return content


def check_values(text: memoryview, most_values: int) -> None:
    """Raise InvalidArgument for a JSON text with more values than its model's tensors can have.

    Args:
        most_values: elements that all inputs of the model may have together.
    """
    most_commas = most_values + _COMMAS_BESIDE
    if _excess(text, {_COMMA: most_commas}, strings=True) is None:
        return
    if _excess(_without_escapes(bytes(text)), {_COMMA: most_commas}, strings=False) is not None:
        raise InvalidArgument(
            f"the request has more than {most_values} values, which is all that the model may be sent"
        )


def _check_counts(text: bytes, most_objects: int) -> None:
    """Raise InvalidArgument for a JSON text of too many parts; characters in strings do not count."""
    limits = {_OPENING: _MAX_CONTAINERS, _BRACE: most_objects, _COLON: _MAX_MEMBERS}
    if _excess(text, limits, strings=True) is None:  # as for nearly all texts
        return
    excess = _excess(_without_escapes(text), limits, strings=False)
    if excess is not None:
        raise InvalidArgument(f"the request's JSON has more than {limits[excess]} {_NAMES[excess]}")


def _without_escapes(text: bytes) -> bytes:
    """Return a JSON text with the same parts, in which every quotation mark begins or ends a string."""
    return text.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in text else text


def _excess(text: bytes | memoryview, limits: Mapping[int, int], *, strings: bool) -> int | None:
    """Return the first character that exceeds its limit in a text; None without one.

    Args:
        limits: by character.
        strings: also count characters in strings.
    """
    counts = dict.fromkeys(limits, 0)
    inside = np.False_
    for at in range(0, len(text), _CHUNK_BYTES):
        found = np.frombuffer(text, np.uint8, min(_CHUNK_BYTES, len(text) - at), at)
        if not strings:
            within = np.logical_xor.accumulate(found == _QUOTE) ^ inside
            inside = within[-1]
            found = np.where(within, np.uint8(0), found)
        for character, limit in limits.items():
            there = found | _CASE == _BRACE if character == _OPENING else found == character
            counts[character] += int(np.count_nonzero(there))
            if counts[character] > limit:
                return character
    return None
