"""Infer request head: the JSON part, parsed and checked apart from the tensors that follow it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from serving_runtime.common.datatypes import Datatype
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import NO_PARAMETERS
from serving_runtime.engine.memory.shared_memory import Slice
from serving_runtime.protocol.http.codec import json_floats, json_numbers
from serving_runtime.protocol.http.codec.json_body import json_object
from serving_runtime.protocol.tensors import binary as tensors
from serving_runtime.protocol.tensors import parameters
from serving_runtime.protocol.tensors.shared_memory import slice_of

_MOST_OBJECTS = 4 * tensors.MAX_TENSORS + 2
"""Objects in a head: itself, its parameters, and as many for each input and output."""

_NO_SLICES: Mapping[str, Slice] = {}


class InputHead(NamedTuple):
    """One input as the head describes it.

    Attributes:
        size: in bytes for a binary one, else None.
        data: its JSON data where it is neither binary nor in shared memory.
        part: its slice of shared memory.
        is_view: binary, of the size that its shape needs, and usable as an array without conversion.
    """

    name: str
    datatype: Datatype
    shape: tuple[int, ...]
    size: int | None
    data: Any
    part: Slice | None
    is_view: bool


class OutputForms(NamedTuple):
    """Requested forms of the outputs.

    Attributes:
        names: in order, empty for all.
        binary: whether outputs are binary unless `binary_by_name` overrides it.
        classes: number of classes in place of an output.
        parts: shared memory slices for outputs.
    """

    names: tuple[str, ...] = ()
    binary: bool = False
    binary_by_name: Mapping[str, bool] = NO_PARAMETERS
    classes: Mapping[str, int] = NO_PARAMETERS
    parts: Mapping[str, Slice] = _NO_SLICES

    @property
    def all_json(self) -> bool:
        """Return whether every output goes into the JSON itself."""
        return not (self.binary or self.parts or any(self.binary_by_name.values()))


class InferHead(NamedTuple):
    """A checked head.

    Attributes:
        id: where it is not at the beginning; see infer_head_reuse.py.
    """

    inputs: tuple[InputHead, ...]
    forms: OutputForms
    parameters: Mapping[str, Any]
    id: str = ""


def parse(text: bytes) -> InferHead:
    """Return the head in a JSON text; raises InvalidArgument or Unsupported."""
    if not text:
        raise InvalidArgument("the request body must begin with a JSON object")
    return head_of(
        json_floats.infer_object(text) or json_numbers.infer_object(text) or json_object(text, _MOST_OBJECTS)
    )


def head_of(content: dict[str, Any]) -> InferHead:
    """Return the head in a JSON object; raises InvalidArgument."""
    inputs = content.get("inputs")
    if type(inputs) is not list or not inputs:
        raise InvalidArgument("the request must have an array 'inputs' that is not empty")
    tensors.check_count(len(inputs), "inputs")
    own = parameters.checked(content.get("parameters"))
    binary = _flag(own, "binary_data_output", "the request", default=False)
    return InferHead(
        tuple([_input(item) for item in inputs]),
        _forms(content.get("outputs"), binary=binary),
        own,
        request_id(content),
    )


def request_id(content: dict[str, Any]) -> str:
    """Return the id in a request's JSON object, empty without one; raises InvalidArgument."""
    found = content.get("id", "")
    if type(found) is not str:
        raise InvalidArgument("the request's 'id' must be a string")
    return found


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
    own = item.get("parameters")
    if own is None:
        own = NO_PARAMETERS
    elif type(own) is not dict:
        raise InvalidArgument(f"input '{name}': 'parameters' must be an object")
    size = own.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise InvalidArgument(f"input '{name}': binary_data_size must be an integer >= 0")
    part = slice_of(own, "input", name)
    if (size is not None) + (part is not None) + ("data" in item) != 1:
        raise _unclear_source(item, size, part)
    is_view = size is not None and tensors.is_view(size, datatype, shape)
    return InputHead(name, datatype, shape, size, item.get("data"), part, is_view)


def _unclear_source(item: dict[str, Any], size: int | None, part: Slice | None) -> InvalidArgument:
    owner = f"input '{item['name']}'"
    given = [
        *(["data"] if "data" in item else []),
        *(["the parameter binary_data_size"] if size is not None else []),
        *(["shared memory"] if part is not None else []),
    ]
    if not given:
        return InvalidArgument(f"{owner} has neither data nor the parameter binary_data_size nor shared memory")
    return InvalidArgument(f"{owner} has both {given[0]} and {given[1]}")


def _forms(outputs: Any, *, binary: bool) -> OutputForms:
    if outputs is None:
        return OutputForms(binary=binary)
    if type(outputs) is not list:
        raise InvalidArgument("'outputs' must be an array")
    tensors.check_count(len(outputs), "outputs")
    names: list[str] = []
    binary_by_name: dict[str, bool] = {}
    classes: dict[str, int] = {}
    parts: dict[str, Slice] = {}
    for item in outputs:
        name = item.get("name") if type(item) is dict else None
        if type(name) is not str:
            raise InvalidArgument("each of 'outputs' must be an object with a string 'name'")
        names.append(name)
        own = item.get("parameters")
        if own is None:
            continue
        if type(own) is not dict:
            raise InvalidArgument(f"output '{name}': 'parameters' must be an object")
        if "binary_data" in own:
            binary_by_name[name] = _flag(own, "binary_data", f"output '{name}'", default=binary)
        count = own.get("classification", 0)
        if type(count) is not int or count < 0:
            raise InvalidArgument(f"output '{name}': 'classification' must be an integer >= 0")
        if count:
            classes[name] = count
        part = slice_of(own, "output", name)
        if part is not None:
            if count or binary_by_name.get(name):
                raise InvalidArgument(f"output '{name}': shared memory excludes binary_data and classification")
            parts[name] = part
    return OutputForms(tuple(names), binary, binary_by_name, classes or NO_PARAMETERS, parts)


def _flag(own: Mapping[str, Any], key: str, owner: str, *, default: bool) -> bool:
    value = own.get(key, default)
    if type(value) is not bool:
        raise InvalidArgument(f"{owner}: parameter '{key}' must be true or false")
    return value
