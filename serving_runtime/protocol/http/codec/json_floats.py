"""FP32 tensors in JSON: large flat arrays, read by compiled code once it is available.

The arrays are cut out, orjson reads the small rest with an integer in place of each, and each is read where it lies.
Any JSON value may replace another, so if the rest and each array are valid by themselves, so is the whole. Anything
unusual is left to json_numbers.py.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from numpy.typing import NDArray

from serving_runtime.protocol.http.codec.compiled.compiler import Compiler

compiler = Compiler()
"""The compiler of this process."""

_WORTH_BYTES = 16 * 1024
"""Shorter texts, and shorter arrays, are read as fast by other means."""

_MOST_REST_BYTES = 64 * 1024
_KEY = b'"data"'
_FLAT = re.compile(rb'"data"[ \t\r\n]*:[ \t\r\n]*\[(?![ \t\r\n]*\[)')

Reads = Callable[[bytes, int, int, int], NDArray[Any] | None]
"""Like `Read`, into an array of any datatype."""

Part = tuple[int, int]
"""Bounds in a text: behind an array's opening bracket, and at its closing one."""


def infer_object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a text, large FP32 `data` as numpy arrays; None where another reader must read it."""
    if len(text) < _WORTH_BYTES:
        return None
    read = compiler.reader(len(text))
    return None if read is None else object_read(text, {"FP32": read})


def object_read(text: bytes, readers: Mapping[str, Reads]) -> dict[str, Any] | None:
    """Read like `infer_object`, by readers for their datatypes."""
    parts = _parts(text)
    content = None if parts is None else _rest(text, parts)
    inputs = None if content is None else content.get("inputs")
    if parts is None or type(inputs) is not list or not all(type(item) is dict for item in inputs):
        return None
    if [item.get("data") for item in inputs] != list(range(len(parts))):  # one of them is elsewhere
        return None
    for item, (start, end) in zip(inputs, parts, strict=True):
        numbers = _numbers(text, start, end, item, readers)
        if numbers is None:
            return None
        item["data"] = numbers
    return content


def _parts(text: bytes) -> Sequence[Part] | None:
    """Return the bounds of the arrays under `data`; None where a `data` is no flat array."""
    parts, at = [], 0
    while (at := text.find(_KEY, at)) >= 0:
        found = _FLAT.match(text, at)
        end = -1 if found is None else text.find(b"]", found.end())
        if found is None or end < 0:
            return None
        parts.append((found.end(), end))
        at = end
    return parts


def _rest(text: bytes, parts: Sequence[Part]) -> dict[str, Any] | None:
    """Return the object with each array replaced by its number."""
    pieces, at = [], 0
    for number, (start, end) in enumerate(parts):
        pieces += [text[at : start - 1], b"%d" % number]
        at = end + 1
    if sum(map(len, pieces)) + len(text) - at > _MOST_REST_BYTES:
        return None
    rest = b"".join([*pieces, text[at:]])
    if b"\\" in rest:  # an escaped name would be missed by the search
        return None
    try:
        content = orjson.loads(rest)
    except orjson.JSONDecodeError:
        return None
    return content if type(content) is dict else None


def _numbers(text: bytes, start: int, end: int, item: dict[str, Any], readers: Mapping[str, Reads]) -> Any:
    """Return an array's values, a large one as a numpy array, else a list; None where another reader must read it."""
    if end - start < _WORTH_BYTES:
        try:
            return orjson.loads(text[start - 1 : end + 1])
        except orjson.JSONDecodeError:
            return None
    dims = item.get("shape")
    datatype = item.get("datatype")
    read = readers.get(datatype) if isinstance(datatype, str) else None
    if read is None or type(dims) is not list or not all(type(dim) is int for dim in dims):
        return None
    count = math.prod(dims)
    if not 0 < count <= end - start:  # each number takes a digit
        return None
    return read(text, start, end, count)
