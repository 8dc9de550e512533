"""Tensors of recorded V2 bodies. Pure; the comparison of answers reads through it.

A body is V2's JSON; with the binary extension the tensors' bytes follow the JSON, whose length comes separately
(`Inference-Header-Content-Length`). The payload tap writes what JSON cannot carry exactly as base64 of a tensor's
binary form, marked by its parameters: {"encoding": "base64"}.

Bodies come from clients and models and are not trusted: sizes are compared with the bytes present before anything is
allocated, and every error is one sentence.

Source: V2: tensor data is row-major little-endian; a BYTES element follows its length, four bytes.
"""

import base64
import binascii
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.tensors import DTYPES, Array, Tensor

MOST_BYTES = 16 * 2**20
MOST_TENSORS = 1000
_MOST_DIMENSIONS = 32
_SHOWN_CHARACTERS = 60


Fields = Mapping[str, Any]


def inputs_of(body: bytes | Fields, json_bytes: int | None = None) -> dict[str, Tensor]:
    """Return the input tensors of a request by name.

    Args:
        body: as sent or recorded; or its JSON, already parsed.
        json_bytes: length of the JSON at the body's beginning, where tensors' bytes follow; None where all is JSON.

    Raises:
        InvalidInput: with one sentence about what is wrong with the body.
    """
    return _tensors(_Body(body, json_bytes), "inputs")


def outputs_of(body: bytes | Fields, json_bytes: int | None = None) -> dict[str, Tensor]:
    """Return the output tensors of an answer by name; like `inputs_of`."""
    return _tensors(_Body(body, json_bytes), "outputs")


class _Body:
    """A parsed body: the fields of its JSON, and the bytes after it, which are handed out in order."""

    fields: Fields

    def __init__(self, body: bytes | Fields, json_bytes: int | None) -> None:
        if not isinstance(body, bytes):
            self.fields, self._rest = body, memoryview(b"")
            return
        if len(body) > MOST_BYTES:
            raise InvalidInput(f"the body has {len(body)} bytes; at most {MOST_BYTES} are read")
        end = len(body) if json_bytes is None else json_bytes
        if not 0 <= end <= len(body):
            raise InvalidInput(f"the body's JSON should have {end} bytes, but the body has {len(body)}")
        try:
            fields = json.loads(body[:end])
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"the body is no JSON that can be read: {_shown(str(error))}") from error
        if not isinstance(fields, dict):
            raise InvalidInput("the body's JSON is no object")
        self.fields = fields
        self._rest = memoryview(body)[end:]

    def take(self, count: int) -> memoryview:
        """Return the next `count` bytes after the JSON."""
        if not 0 <= count <= len(self._rest):
            raise InvalidInput(f"binary_data_size is {count}, but {len(self._rest)} bytes are left in the body")
        taken, self._rest = self._rest[:count], self._rest[count:]
        return taken

    def check_all_taken(self) -> None:
        if len(self._rest):
            raise InvalidInput(f"{len(self._rest)} bytes at the body's end belong to no tensor")


def _tensors(body: _Body, where: str) -> dict[str, Tensor]:
    items = body.fields.get(where)
    if not isinstance(items, list):
        raise InvalidInput(f"the body has no list {where}")
    if len(items) > MOST_TENSORS:
        raise InvalidInput(f"{where} has {len(items)} tensors; at most {MOST_TENSORS} are read")
    tensors: dict[str, Tensor] = {}
    for number, item in enumerate(items):
        at = f"{where}[{number}]"
        if not isinstance(item, dict) or not isinstance(name := item.get("name"), str):
            raise InvalidInput(f"{at} is no tensor with a name")
        if name in tensors:
            raise InvalidInput(f"{at} has the name {_shown(name)!r}, which another tensor has already")
        try:
            tensors[name] = _tensor(item, body)
        except InvalidInput as error:
            raise InvalidInput(f"{at} ({_shown(name)}): {error.message}") from error
    body.check_all_taken()
    return tensors


def _tensor(item: Mapping[str, Any], body: _Body) -> Tensor:
    datatype, parameters = item.get("datatype"), item.get("parameters")
    if not isinstance(datatype, str) or datatype not in DTYPES:
        raise InvalidInput(f"datatype is {_shown(repr(datatype))}; V2 has {', '.join(DTYPES)}")
    shape = _shape(item.get("shape"))
    parameters = parameters if isinstance(parameters, dict) else {}
    if (size := parameters.get("binary_data_size")) is not None:
        if not _is_int(size):
            raise InvalidInput(f"binary_data_size is {_shown(repr(size))}, which is no number of bytes")
        values = _from_binary(body.take(size), datatype, math.prod(shape))
    elif parameters.get("encoding") == "base64":
        values = _from_binary(memoryview(_decoded(item.get("data"))), datatype, math.prod(shape))
    else:
        values = _from_json(item.get("data"), datatype, math.prod(shape))
    return Tensor(datatype, values.reshape(shape))


def _shape(value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or len(value) > _MOST_DIMENSIONS:
        raise InvalidInput(f"shape is no list of at most {_MOST_DIMENSIONS} dimensions")
    if not all(_is_int(size) and 0 <= size <= MOST_BYTES for size in value):
        raise InvalidInput(f"shape is {_shown(str(value))}; dimensions are whole numbers from 0 to {MOST_BYTES}")
    if math.prod([size for size in value if size]) > MOST_BYTES:
        raise InvalidInput(f"shape is {_shown(str(value))}, which is more than can have been recorded")
    return tuple(value)


def _decoded(value: object) -> bytes:
    texts = value if isinstance(value, list) else [value]
    if len(texts) != 1 or not isinstance(texts[0], str):
        raise InvalidInput("data is not the one base64 text that its encoding announces")
    try:
        return base64.b64decode(texts[0], validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidInput(f"data is no base64: {error}") from error


def _from_binary(content: memoryview, datatype: str, count: int) -> Array:
    if datatype == "BYTES":
        return _elements(_split(content, count))
    width = 2 if datatype == "BF16" else DTYPES[datatype].itemsize
    if len(content) != count * width:
        raise InvalidInput(f"the shape has {count} elements of {width} bytes, but the data has {len(content)} bytes")
    if datatype == "BF16":  # the upper half of the FP32 of the same value
        bits: NDArray[np.uint32] = np.frombuffer(content, "<u2").astype("<u4")
        return np.frombuffer((bits << np.uint32(16)).tobytes(), "<f4")
    if datatype == "BOOL":
        return np.frombuffer(content, np.uint8).astype(np.bool_)
    return np.frombuffer(content, DTYPES[datatype])


def _split(content: memoryview, count: int) -> list[bytes]:
    if count * 4 > len(content):
        raise InvalidInput(f"the shape has {count} elements, more than {len(content)} bytes of data can hold")
    elements: list[bytes] = []
    position = 0
    while position < len(content) and len(elements) < count:
        if position + 4 > len(content):
            break
        (length,) = struct.unpack_from("<I", content, position)
        position += 4
        if length > len(content) - position:
            raise InvalidInput(
                f"element {len(elements)} should have {length} bytes, but {len(content) - position} are left"
            )
        elements.append(bytes(content[position : position + length]))
        position += length
    if len(elements) != count or position != len(content):
        raise InvalidInput(f"the shape has {count} elements, but the data has not exactly as many")
    return elements


def _from_json(data: object, datatype: str, count: int) -> Array:
    if not isinstance(data, list):
        raise InvalidInput("data is no list")
    flat = _flat(data)
    if len(flat) != count:
        raise InvalidInput(f"the shape has {count} elements, but data has {len(flat)}")
    if datatype == "BYTES":
        if not all(isinstance(element, str) for element in flat):
            raise InvalidInput("data of BYTES has an element that is no text")
        return _elements([element.encode("utf-8", "surrogatepass") for element in flat])
    kind = DTYPES[datatype].kind
    if not all(type(element) is bool if kind == "b" else _is_number(element, whole=kind in "iu") for element in flat):
        raise InvalidInput(f"data has an element that is no {datatype}")
    try:
        with np.errstate(over="ignore"):
            return np.array(flat, DTYPES[datatype])
    except (OverflowError, ValueError) as error:
        raise InvalidInput(f"data has a number outside of what {datatype} can hold") from error


def _flat(data: list[Any]) -> list[Any]:
    """Return the elements in row-major order; V2 takes data both nested and flat."""
    for _ in range(_MOST_DIMENSIONS):
        if not any(isinstance(element, list) for element in data):
            return data
        if not all(isinstance(element, list) for element in data):
            raise InvalidInput("data has lists beside elements")
        data = [element for inner in data for element in inner]
    raise InvalidInput(f"data is nested deeper than {_MOST_DIMENSIONS} lists")


def _elements(values: list[bytes]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object, *, whole: bool) -> bool:
    return type(value) is int or (not whole and type(value) is float)


def _shown(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"
