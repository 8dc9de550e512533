"""Input form from a model's signature, and the V2 request from its values. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Never

from common.errors import InvalidInput
from deployments.web.try_page.pictures import PictureInput, picture_input, values_of
from registry.domain.signature import Signature, Tensor

_MOST_SHOWN = 1024
_MOST_ELEMENTS = 2_000_000
_MOST_DIMENSIONS = 32

Request = dict[str, Any]
"""The JSON of a V2 inference request."""


@dataclass(frozen=True, slots=True)
class Field:
    """One input of the form.

    Attributes:
        index: index of the input in the signature; the form's names end with it.
        example: valid JSON; empty where it is too long to show, and an empty field then sends zeros.
        picture: its picture format; None where it takes none.
    """

    index: int
    tensor: Tensor
    example: str
    picture: PictureInput | None


def fields_of(signature: Signature) -> tuple[Field, ...]:
    """Return the fields, one for each input."""
    return tuple(
        Field(index, tensor, _example(tensor), picture_input(tensor)) for index, tensor in enumerate(signature.inputs)
    )


def request_of(fields: Sequence[Field], said: Mapping[str, str]) -> Request:
    """Return the request of a filled form, or of the examples where `said` is empty.

    Raises:
        InvalidInput: with what is wrong in which input.
    """
    inputs = []
    for field in fields:
        try:
            entry = _entry(field, said)
        except InvalidInput as error:
            raise InvalidInput(f"input {field.tensor.name}: {error.message}", field=f"data-{field.index}") from error
        if entry is not None:
            inputs.append({"name": field.tensor.name, "datatype": field.tensor.datatype, **entry})
    return {"inputs": inputs}


def _entry(field: Field, said: Mapping[str, str]) -> dict[str, Any] | None:
    """Return shape and data of an input; None for an omitted one."""
    index, tensor = field.index, field.tensor
    pixels = said.get(f"pixels-{index}", "")
    if pixels and field.picture is not None:
        size, scale = said.get(f"size-{index}", ""), said.get(f"scale-{index}", "")
        shape, values = values_of(pixels, size, scale, field.picture, tensor.datatype)
        return {"shape": shape, "data": values}
    text = said.get(f"data-{index}", "").strip() or field.example
    if text:
        data = _read(text)
        return {"shape": _shape(data, tensor), "data": data}
    if tensor.optional:
        return None
    shape = _closed(tensor)
    if prod(shape) > _MOST_ELEMENTS:
        raise InvalidInput(f"it has {prod(shape)} elements; at most {_MOST_ELEMENTS} are sent from here")
    return {"shape": shape, "data": [_zero(tensor.datatype)] * prod(shape)}


def _read(text: str) -> list[Any]:
    def no_number(name: str) -> Never:
        raise InvalidInput(f"{name} is not a number that JSON has")

    try:
        data = json.loads(text, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"that is not JSON: {error}") from error
    if isinstance(data, dict):
        raise InvalidInput("that is an object; expected a list of values, nested as the shape is or flat")
    return data if isinstance(data, list) else [data]


def _shape(data: list[Any], tensor: Tensor) -> list[int]:
    """Return the shape of nested lists; for a flat one the tensor's, with its open dimension by the count."""
    found: list[int] = []
    level: Any = data
    while isinstance(level, list) and len(found) < _MOST_DIMENSIONS:
        found.append(len(level))
        level = level[0] if level else None
    if len(found) > 1 or len(tensor.shape) == 1:
        return found
    at = [index for index, size in enumerate(tensor.shape) if size < 0]
    # The batch dimension is first: a flat list is one row where other dimensions are open too.
    if len(at) == 2 and at[0] == 0:
        at = at[1:]
    if len(at) > 1:
        raise InvalidInput(f"a flat list does not determine the shape {list(tensor.shape)}; nest it as the shape is")
    shape = _closed(tensor)
    rest = prod(size for index, size in enumerate(shape) if index not in at)
    if at and rest and len(data) % rest == 0:
        shape[at[0]] = len(data) // rest
    if prod(shape) != len(data):
        raise InvalidInput(f"there are {len(data)} values, which do not fill the shape {list(tensor.shape)}")
    return shape


def _example(tensor: Tensor) -> str:
    shape = _closed(tensor)
    if tensor.optional or prod(shape) > _MOST_SHOWN:
        return ""
    nested: Any = _zero(tensor.datatype)
    for size in reversed(shape):
        nested = [nested] * size
    return json.dumps(nested)


def _closed(tensor: Tensor) -> list[int]:
    """Return the smallest shape that the tensor accepts."""
    return [1 if size < 0 else size for size in tensor.shape]


def _zero(datatype: str) -> object:
    if datatype == "BYTES":
        return ""
    if datatype == "BOOL":
        return False
    return 0.0 if datatype.startswith(("FP", "BF")) else 0
