"""Incremental JSON writer for large values: works in pieces, so that no call keeps the GIL for long.

The counterpart of json_parser.py. Arrays are cut at their first dimensions, lists and objects between their elements: a
piece holds no more elements than are converted in one go.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from serving_runtime.protocol.tensors.binary import STEP

_CHARACTERS = 16
"""Characters of a string that take as long as a number."""


def whole(content: Any) -> bytes:
    """Return a small value as JSON, in one piece."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def pieces(content: Any) -> Iterator[bytes]:
    """Yield a large value as JSON: objects, lists, C-contiguous arrays of numbers, and other types of orjson."""
    if type(content) is dict:
        before = b"{"
        for key, value in content.items():
            yield before + whole(key) + b":"
            yield from pieces(value)
            before = b","
        yield b"}" if content else b"{}"
    elif type(content) is list:
        yield from _of_elements(content)
    elif isinstance(content, np.ndarray) and content.size > STEP:
        yield from _of_rows(content)
    else:
        yield whole(content)


def _of_elements(content: list[Any]) -> Iterator[bytes]:
    """Yield a list: small elements together, large ones in pieces."""
    before, start, weight = b"[", 0, 0
    for at, element in enumerate(content):
        own = _weight(element)
        if start < at and weight + own > STEP:
            yield before + whole(content[start:at])[1:-1]
            before, start, weight = b",", at, 0
        weight += own
        if own > STEP:
            yield before
            yield from pieces(element)
            before, start, weight = b",", at + 1, 0
    if start < len(content):
        yield before + whole(content[start:])[1:-1]
    yield b"]" if content else b"[]"


def _of_rows(array: Any) -> Iterator[bytes]:
    """Yield an array of at least one element."""
    before, rows = b"[", array.shape[0] * STEP // array.size
    for at in range(0, len(array), max(rows, 1)):
        if rows:
            yield before + whole(array[at : at + rows])[1:-1]
        else:
            yield before
            yield from _of_rows(array[at])
        before = b","
    yield b"]"


def _weight(value: Any) -> int:
    """Return the approximate number of elements in a value."""
    if isinstance(value, np.ndarray):
        return int(value.size)
    if type(value) is str:
        return 1 + len(value) // _CHARACTERS
    if type(value) is list:
        return 1 + sum(map(_weight, value))
    if type(value) is dict:
        return 1 + sum(map(_weight, value.values()))
    return 1
