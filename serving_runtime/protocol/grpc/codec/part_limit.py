"""Limits the parts of gRPC messages before they are parsed: two bytes may become an object of a hundred."""

import numpy as np

from serving_runtime.common.errors import InvalidArgument
from serving_runtime.proto import wire
from serving_runtime.protocol.tensors.binary import MAX_TENSORS
from serving_runtime.protocol.tensors.decoding import SLOW_BYTES

_WORTH_BYTES = 64 * 1024
"""Shorter messages cannot have enough parts to matter."""

_MOST_FIELDS = 4 * MAX_TENSORS
"""Limit per message: a request has inputs, outputs, raw contents and parameters."""

_TENSOR_FIELDS = (5, 6)
"""ModelInferRequest: inputs and outputs."""

_RAW_FIELD = 7
"""ModelInferRequest: raw_input_contents."""

_CONTENTS = 5
"""ModelInferRequest.InferInputTensor: contents."""

_MOST_ELEMENTS = 1_000_000
"""Limit of typed contents, where each element is a field of its own: all of BYTES, and numbers that are not packed."""

_INTEGERS = (1, 2, 3, 4, 5)
"""InferTensorContents: bool_contents to uint64_contents, which a parser reads one by one even where they are packed."""

_MOST_INTEGERS = 25_000_000
"""Limit of all typed contents of a message: its parser keeps the GIL until it has read the last."""

_FEW_FIELDS, _HIGH_BIT = 64, 0x80
_SHAPE, _MOST_SHAPE_BYTES = 3, 4096
"""ModelInferRequest.InferInputTensor: shape."""


def is_slow(content: memoryview) -> bool:
    """Return whether a ModelInferRequest of more than SLOW_BYTES should be decoded off the event loop.

    Raw tensors are views of their bytes; numbers in typed contents, and elements of BYTES, are read one by one.
    """
    others = len(content)
    try:
        for count, (number, wire_type, begin, end) in enumerate(wire.fields(content)):
            if count > _MOST_FIELDS:
                return True
            if wire_type != wire.BYTES:
                continue
            if number == _RAW_FIELD:
                others -= end - begin
            elif number in _TENSOR_FIELDS and (end - begin > SLOW_BYTES or b"BYTES" in content[begin:end].tobytes()):
                return True
    except wire.MalformedError:
        return True
    return others > SLOW_BYTES


def check(kind: str, content: memoryview) -> None:
    """Raise InvalidArgument for a serialized message of too many fields; the parser refuses malformed ones.

    Args:
        kind: the message's name.
    """
    if len(content) <= _WORTH_BYTES:
        return
    integers = 0
    try:
        for number, wire_type, begin, end in _counted(kind, content):
            if kind == "ModelInferRequest" and number in _TENSOR_FIELDS and wire_type == wire.BYTES:
                integers += _check_tensor(content[begin:end])
                if integers > _MOST_INTEGERS:
                    raise InvalidArgument(
                        f"typed contents have more than {_MOST_INTEGERS} integers; send raw_input_contents"
                    )
    except wire.MalformedError:
        return


def _counted(kind: str, content: memoryview) -> list[tuple[int, int, int, int]]:
    found = []
    for field in wire.fields(content):
        found.append(field)
        if len(found) > _MOST_FIELDS:
            raise InvalidArgument(f"the {kind} has more than {_MOST_FIELDS} inputs, outputs, contents and parameters")
    return found


def _check_tensor(content: memoryview) -> int:
    """Return how many integers its typed contents have, 0 where those are few bytes."""
    integers = 0
    if len(content) <= _WORTH_BYTES:
        return integers
    for number, wire_type, begin, end in _counted("tensor", content):
        if number == _CONTENTS and wire_type == wire.BYTES:
            integers += _check_contents(content[begin:end])
        if number == _SHAPE and wire_type == wire.BYTES and end - begin > _MOST_SHAPE_BYTES:
            raise InvalidArgument(f"a tensor has a shape of {end - begin} bytes; at most {_MOST_SHAPE_BYTES} are read")
    return integers


def _check_contents(content: memoryview) -> int:
    """Return the number of integers; an upper bound where they are not packed, or follow many other fields."""
    integers = 0
    for count, (number, wire_type, begin, end) in enumerate(wire.fields(content)):
        if count >= _FEW_FIELDS and len(content) <= 2 * _MOST_ELEMENTS:
            return integers + _integers(content[begin:])
        if count >= _MOST_ELEMENTS:
            raise InvalidArgument(
                f"the contents of a tensor have more than {_MOST_ELEMENTS} elements one by one; send raw_input_contents"
            )
        if number in _INTEGERS and wire_type == wire.BYTES:
            integers += _integers(content[begin:end])
    return integers


def _integers(content: memoryview) -> int:
    """Return how many integers these bytes pack: the last byte of each has no high bit (protobuf: encoding)."""
    return int(np.count_nonzero(np.frombuffer(content, np.uint8) < _HIGH_BIT))
