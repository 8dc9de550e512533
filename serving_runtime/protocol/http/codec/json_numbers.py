"""Numeric tensors in JSON: flat arrays, read by simdjson without a Python object for each number.

simdjson finds the structure and returns the numbers as one block of memory. Only plain requests are read here; for
anything else, valid or not, there is json_body.py, which also reports what is wrong with it.
"""

import functools
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from serving_runtime.common.datatypes import BYTES, DATATYPES
from serving_runtime.protocol.http.codec import json_floats

try:
    import simdjson
except ImportError:  # no wheel for this machine: json_body.py reads all bodies
    simdjson = None  # type: ignore[assignment]

_WORTH_BYTES = 1024
"""Below this json_body.py is as fast."""

_MANY = 1000
"""Limit of arrays, and of objects, in a request read here: many inputs have two arrays and two objects each."""

_MOST_BYTES = 4 * 1024 * 1024
"""Limit of a text parsed at once: the parser takes the GIL, and keeps memory of several times the text's size."""

_PIECE_BYTES = 256 * 1024
"""Piece size for the arrays of longer texts."""

_CODES = {
    datatype.name: "d" if datatype.holds_floats else {"u": "u"}.get(datatype.dtype.kind, "i")
    for datatype in DATATYPES.values()
    if datatype is not BYTES and datatype.dtype.kind != "b"
}
"""simdjson's number type for each datatype: FP64, UINT64 or INT64; values that do not fit are refused."""

_DTYPES = {code: np.dtype(f"{kind}8") for code, kind in (("d", "f"), ("u", "u"), ("i", "i"))}


class _OutOfOrdinaryError(Exception):
    """The text is not read here."""


def infer_object(text: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a text, each input's `data` as a numpy array; None where another reader must read it.

    It returns the same numbers as orjson: FP64 for floating-point datatypes, 64-bit integers for the others.
    """
    if simdjson is None or len(text) < _WORTH_BYTES or text[:1] != b"{" or b'"data"' not in text:
        return None
    if len(text) > _MOST_BYTES:
        return json_floats.object_read(text, _READERS)
    brackets = _count(text, b"[")
    if brackets > _MANY or _count(text, b"{") > _MANY:
        return None
    parser = _kept.parser
    try:
        return _read(parser.parse(text), brackets)
    except (_OutOfOrdinaryError, AttributeError, LookupError, RuntimeError, TypeError, ValueError):
        return None


def _read_pieces(code: str, text: bytes, start: int, end: int, count: int) -> NDArray[Any] | None:
    """Return the numbers of an array, read piece by piece; None where it does not hold so many."""
    whole = np.empty(count, _DTYPES[code])
    at = 0
    while start < end:
        comma = text.find(b",", min(start + _PIECE_BYTES, end), end)
        cut = comma if comma >= 0 else end
        try:
            array: Any = _kept.parser.parse(b"[%s]" % text[start:cut])
            found = np.frombuffer(array.as_buffer(of_type=code), whole.dtype)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return None
        del array  # the parser is used again
        if not 0 < len(found) <= count - at or cut + 1 == end:
            return None
        whole[at : at + len(found)] = found
        at += len(found)
        start = cut + 1
    return whole if at == count else None


_READERS = {name: functools.partial(_read_pieces, code) for name, code in _CODES.items()}


def _count(text: bytes, byte: bytes) -> int:
    """Return the count of a byte in a text, or `_MANY` + 1 for more.

    It jumps from one to the next: with few in a long text, that is many times as fast as counting.
    """
    found = -1
    for count in range(_MANY + 1):
        found = text.find(byte, found + 1)
        if found < 0:
            return count
    return _MANY + 1


def _read(document: Any, brackets: int) -> dict[str, Any]:
    members = _members(document)
    inputs = members.pop("inputs")
    content = {name: _plain(value) for name, value in members.items()}
    arrays = 1 + _arrays(members)
    items = []
    for item in inputs:
        found = _members(item)
        arrays += _arrays(found)
        data = found.pop("data")
        plain = {name: _plain(value) for name, value in found.items()}
        code = _CODES[plain["datatype"]]
        plain["data"] = np.frombuffer(data.as_buffer(of_type=code), _DTYPES[code])
        items.append(plain)
    if brackets != arrays:  # nested arrays, such as nested data, or brackets in a string
        raise _OutOfOrdinaryError
    content["inputs"] = items
    return content


def _members(found: Any) -> dict[str, Any]:
    """Return an object's members; the last of one name counts, while simdjson would return the first."""
    if type(found) is not simdjson.Object:
        raise _OutOfOrdinaryError
    members = {name: found[name] for name in found}
    if len(members) != len(found):
        raise _OutOfOrdinaryError
    return members


def _arrays(members: Mapping[str, Any]) -> int:
    return sum([type(value) is simdjson.Array for value in members.values()])


def _plain(value: Any) -> Any:
    if type(value) is simdjson.Object:
        return value.as_dict()
    return value.as_list() if type(value) is simdjson.Array else value


class _Kept(threading.local):
    """The parser of a thread."""

    def __init__(self) -> None:
        self.parser = simdjson.Parser() if simdjson is not None else None


_kept = _Kept()
