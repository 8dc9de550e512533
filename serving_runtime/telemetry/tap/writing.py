"""Incremental JSON serialization of events.

Writing a large tensor in one call would keep the GIL, and delay the event loop and its responses, for as long as it
takes.
"""

import base64
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import orjson

_ELEMENTS_AT_ONCE = 8192
"""Of an array or a list; orjson takes about half a millisecond for so many floats."""

_BYTES_AT_ONCE = 3 * 65536
"""Of base64, which three bytes fit without padding."""


class Binary(NamedTuple):
    """Bytes to be written as one base64 string."""

    content: bytes


def written(event: dict[str, Any]) -> bytes:
    """Return an event as JSON on one line; its values may be flat numpy arrays and Binary too."""
    return b"".join(list(_pieces(event)))


def _pieces(value: Any) -> Iterator[bytes]:
    if isinstance(value, dict):
        yield b"{"
        for number, (key, item) in enumerate(value.items()):
            yield (b"," if number else b"") + orjson.dumps(key) + b":"
            yield from _pieces(item)
        yield b"}"
    elif isinstance(value, Binary):
        view = memoryview(value.content)
        yield b'"'
        for start in range(0, len(view), _BYTES_AT_ONCE):
            yield base64.b64encode(view[start : start + _BYTES_AT_ONCE])
        yield b'"'
    elif isinstance(value, list) and any(isinstance(item, dict | Binary) for item in value):
        yield b"["
        for number, item in enumerate(value):
            yield b"," if number else b""
            yield from _pieces(item)
        yield b"]"
    elif isinstance(value, list | np.ndarray):
        yield b"["
        for start in range(0, len(value), _ELEMENTS_AT_ONCE):
            part = orjson.dumps(value[start : start + _ELEMENTS_AT_ONCE], option=orjson.OPT_SERIALIZE_NUMPY)
            yield (b"," if start else b"") + part[1:-1]
        yield b"]"
    else:
        yield orjson.dumps(value)
