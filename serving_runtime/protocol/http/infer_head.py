"""The JSON part of an infer request, parsed and checked apart from the tensors that follow it.

A client that sends the same shapes again sends the same bytes again, so a head that holds neither data nor an id is
kept with the model it was sent to, and with it the JSON of the answers it got: see HeadCache.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from serving_runtime.datatypes import Datatype
from serving_runtime.errors import InvalidArgument, Unsupported
from serving_runtime.protocol import tensors
from serving_runtime.request import NO_PARAMETERS

_MANY_BYTES = 1024 * 1024
_MAX_CONTAINERS = 1_000_000
"""Arrays and objects in one body: an empty array is two bytes in JSON, but over fifty as an object in memory."""

_KEPT_BYTES = 1024
_KEPT_HEADS = 256
KEPT_ANSWERS = 64


class InputHead(NamedTuple):
    """One input as the head describes it: `size` in bytes for a binary one, else None and `data` from JSON."""

    name: str
    datatype: Datatype
    shape: tuple[int, ...]
    size: int | None
    data: Any


class AnswerHead(NamedTuple):
    """What an answer begins with when all its outputs are binary and of a fixed size; `length` counts all of it."""

    headers: bytes
    text: bytes
    length: int


class InferHead:
    """A checked head.

    Attributes:
        outputs: names asked for, empty for all.
        binary: whether outputs are answered in binary unless `binary_by_name` says otherwise.
        answers: answer heads by model version and output shapes; None for a head that is not kept.
    """

    __slots__ = ("answers", "binary", "binary_by_name", "id", "inputs", "outputs", "parameters")

    def __init__(self, content: dict[str, Any]) -> None:
        inputs = content.get("inputs")
        if type(inputs) is not list or not inputs:
            raise InvalidArgument("the request must have an array 'inputs' that is not empty")
        self.inputs = tuple([_input(item) for item in inputs])
        self.parameters: Mapping[str, Any] = content.get("parameters", NO_PARAMETERS)
        if self.parameters is not NO_PARAMETERS and type(self.parameters) is not dict:
            raise InvalidArgument("the request's 'parameters' must be an object")
        self.id = content.get("id", "")
        if type(self.id) is not str:
            raise InvalidArgument("the request's 'id' must be a string")
        self.binary = _flag(self.parameters, "binary_data_output", "the request", default=False)
        self.outputs, self.binary_by_name = _outputs(content.get("outputs"), default=self.binary)
        self.answers: dict[tuple[object, ...], AnswerHead] | None = None


class HeadCache:
    """The heads that one infer path was sent before, bounded in number and in size."""

    def __init__(self) -> None:
        self._heads: dict[bytes, InferHead] = {}

    def head(self, text: bytes) -> InferHead:
        """Return the checked head; raises InvalidArgument or Unsupported."""
        head = self._heads.get(text)
        if head is None:
            head = InferHead(_loads(text))
            if len(text) <= _KEPT_BYTES and not head.id and all(item.size is not None for item in head.inputs):
                if len(self._heads) >= _KEPT_HEADS:
                    self._heads.clear()
                head.answers = {}
                self._heads[text] = head
        return head


def _loads(text: bytes) -> dict[str, Any]:
    if not text:
        raise InvalidArgument("the request body must begin with a JSON object; requests of raw bytes are not supported")
    if len(text) > _MANY_BYTES and text.count(b"[") + text.count(b"{") > _MAX_CONTAINERS:
        raise InvalidArgument(f"the request's JSON has more than {_MAX_CONTAINERS} arrays and objects; send data flat")
    try:
        content = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidArgument(f"the request is not valid JSON: {error}") from error
    if type(content) is not dict:
        raise InvalidArgument("the request must be a JSON object")
    return content


def _input(item: Any) -> InputHead:
    if type(item) is not dict:
        raise InvalidArgument("each of 'inputs' must be an object")
    name = item.get("name")
    if type(name) is not str:
        raise InvalidArgument("each of 'inputs' must have a string 'name'")
    datatype = tensors.datatype_named(item.get("datatype"), name)
    dims = item.get("shape")
    if type(dims) is not list:
        raise InvalidArgument(f"input '{name}' must have an array 'shape'")
    shape = tensors.checked_shape(dims, name)
    size = _binary_size(item.get("parameters"), name)
    if size is None and "data" not in item:
        raise InvalidArgument(f"input '{name}' has neither data nor the parameter binary_data_size")
    if size is not None and "data" in item:
        raise InvalidArgument(f"input '{name}' has both data and the parameter binary_data_size")
    return InputHead(name, datatype, shape, size, item.get("data"))


def _binary_size(parameters: Any, name: str) -> int | None:
    if parameters is None:
        return None
    if type(parameters) is not dict:
        raise InvalidArgument(f"input '{name}': 'parameters' must be an object")
    if "shared_memory_region" in parameters:
        raise Unsupported(f"input '{name}': shared memory is not supported")
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise InvalidArgument(f"input '{name}': binary_data_size must be an integer >= 0")
    return size


def _outputs(outputs: Any, *, default: bool) -> tuple[tuple[str, ...], dict[str, bool]]:
    """Return the names of the outputs asked for, in order, and the form of each that names one."""
    if outputs is not None and type(outputs) is not list:
        raise InvalidArgument("'outputs' must be an array")
    names = []
    by_name = {}
    for item in outputs or ():
        name = item.get("name") if type(item) is dict else None
        if type(name) is not str:
            raise InvalidArgument("each of 'outputs' must be an object with a string 'name'")
        own = item.get("parameters")
        if own is not None:
            if type(own) is not dict:
                raise InvalidArgument(f"output '{name}': 'parameters' must be an object")
            if own.get("classification"):
                raise Unsupported(f"output '{name}': the classification extension is not supported")
            if "shared_memory_region" in own:
                raise Unsupported(f"output '{name}': shared memory is not supported")
            by_name[name] = _flag(own, "binary_data", f"output '{name}'", default=default)
        names.append(name)
    return tuple(names), by_name


def _flag(parameters: Mapping[str, Any], key: str, owner: str, *, default: bool) -> bool:
    value = parameters.get(key, default)
    if type(value) is not bool:
        raise InvalidArgument(f"{owner}: parameter '{key}' must be true or false")
    return value
