"""Checks of what a sandboxed worker sends: messages and tensors of known forms and sizes, and nothing else. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from serving_runtime.backends.python.wire.failures import CODES
from serving_runtime.backends.python.wire.packing import unpacked
from serving_runtime.common.datatypes import BYTES, DATATYPES, Array, element_count
from serving_runtime.common.request import Tensor

MAX_HEADER_BYTES = 1 << 20
MAX_PAYLOAD_BYTES = 64 << 20
MAX_TEXTS = 1 << 18
"""Limits of one message; all the outputs of a batch are in one."""

LEVELS = ("info", "warning", "error", "verbose")
_MOST_DIMS = 32
_CALLS = ("infer", "ready", "metric")


class MalformedMessageError(Exception):
    """A worker sent something else than a message; the text is part of a sentence."""


def tensors_in(entries: Any, payload: Array) -> list[Tensor]:
    """Return the tensors of a message, all of whose content is in its payload; raises MalformedMessageError."""
    if not isinstance(entries, list):
        raise MalformedMessageError("tensors that are no list")
    found: list[Tensor] = []
    position = texts = 0
    for entry in entries:
        if not isinstance(entry, list) or len(entry) != 5:
            raise MalformedMessageError("a tensor without name, datatype, shape, size and place")
        name, datatype, shape, size, where = entry
        if not isinstance(name, str) or not isinstance(datatype, str) or datatype not in DATATYPES or where != -1:
            raise MalformedMessageError("a tensor of no known datatype or place")
        if not _is_count(size) or position + size > payload.size:
            raise MalformedMessageError("a tensor that is longer than its message")
        if not isinstance(shape, list) or len(shape) > _MOST_DIMS or not all(map(_is_count, shape)):
            raise MalformedMessageError("a tensor whose shape is none")
        content = payload[position : position + size]
        if not _fits(datatype, tuple(shape), content):
            raise MalformedMessageError("a tensor whose content does not fit its shape")
        texts += element_count(tuple(shape)) if datatype == BYTES.name else 0
        if texts > MAX_TEXTS:
            raise MalformedMessageError(f"more than {MAX_TEXTS} texts in one message")
        found.append(unpacked((name, datatype, shape, size), content))
        position += -(-size // 8) * 8
    return found


def check(message: Any, tensors: Sequence[Tensor]) -> None:
    """Raise MalformedMessageError for anything but a worker's message with so many tensors."""
    kind = message.get("do") if isinstance(message, dict) else None
    match kind:
        case "responses":
            _check_responses(message, len(tensors))
            return
        case "log":
            sound = isinstance(message.get("text"), str) and message.get("level") in LEVELS
        case "done":
            config, explains = message.get("config", {}), message.get("explains", False)
            sound = isinstance(config, dict) and isinstance(explains, bool)
        case "failed":
            sound = isinstance(message.get("message"), str)
        case "infer" | "ready" | "metric":
            sound = "call" not in message or _is_count(message["call"])
        case _:
            raise MalformedMessageError("a message of no known kind")
    if not sound or (tensors and kind not in _CALLS):
        raise MalformedMessageError(f"a message '{kind}' without what it needs")


def _check_responses(message: Mapping[str, Any], tensors: int) -> None:
    responses = message.get("responses")
    if not isinstance(responses, list) or not all(isinstance(response, dict) for response in responses):
        raise MalformedMessageError("responses that are no list")
    outputs = 0
    for response in responses:
        if not _is_count(response.get("number")) or response.get("final") is not True:
            raise MalformedMessageError("a response to no request, or one that is not the last")
        if not _is_count(response.get("outputs", 0)):
            raise MalformedMessageError("a response with no number of outputs")
        outputs += response.get("outputs", 0)
        error = response.get("error")
        if error is not None and not _is_error(error):
            raise MalformedMessageError("an error without message and code")
        if not _are_parameters(response.get("parameters", {})):
            raise MalformedMessageError("parameters that are no texts and numbers")
    if outputs != tensors:
        raise MalformedMessageError(f"responses with {outputs} outputs and {tensors} tensors")


def _is_error(error: Any) -> bool:
    if not isinstance(error, dict) or not isinstance(error.get("message"), str):
        return False
    code = error.get("code", "INTERNAL")
    return isinstance(code, str) and code in CODES


def _are_parameters(parameters: Any) -> bool:
    return isinstance(parameters, dict) and all(
        isinstance(value, (bool, str, float)) or (isinstance(value, int) and -(2**63) <= value < 2**63)
        for value in parameters.values()
    )


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**63


def _fits(datatype: str, shape: tuple[int, ...], content: Array) -> bool:
    count = element_count(shape)
    found = DATATYPES[datatype]
    if found is not BYTES:
        return count * found.dtype.itemsize == content.size
    if count * 4 > content.size:
        return False
    lengths = content[: count * 4].view(np.uint32)
    return int(lengths.sum(dtype=np.uint64)) == content.size - count * 4
