"""Model signature: names, V2 datatypes and shapes of its tensors. Pure; `registry.domain.contract` compares two.

A signature is stored as the JSON that the runtime's `inspect` prints: `{"inputs": [tensor, ...], "outputs": [...]}`
with `{"name", "datatype", "shape"}` for each tensor; a dimension of -1 takes any size, the batch dimension is first.
An optional input has `"optional": true`. `"max_batch_size"` is missing where an earlier release stored it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from common.errors import InvalidInput

# V2: tensor data types.
DATATYPES = frozenset(
    "BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 BF16 FP32 FP64 BYTES".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output; a dimension of -1 takes any size; an optional input may be left out."""

    name: str
    datatype: str
    shape: tuple[int, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """Inputs and outputs of a model, in the model's own order.

    Attributes:
        max_batch_size: maximum rows of a request; 0 for a model without batches, None where unknown.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    max_batch_size: int | None = None

    def as_json(self) -> dict[str, object]:
        """Return the JSON form for storage and display."""
        rows = {} if self.max_batch_size is None else {"max_batch_size": self.max_batch_size}
        return {
            "inputs": [_tensor_json(tensor) for tensor in self.inputs],
            "outputs": [_tensor_json(tensor) for tensor in self.outputs],
            **rows,
        }


def parse(document: Mapping[str, object]) -> Signature:
    """Return the signature in `document`; ignores its other keys.

    Raises:
        InvalidInput: a part is missing or malformed.
    """
    rows = document.get("max_batch_size")
    return Signature(
        _tensors(document, "inputs"), _tensors(document, "outputs"), rows if type(rows) is int and rows >= 0 else None
    )


def _tensors(document: Mapping[str, object], key: str) -> tuple[Tensor, ...]:
    entries = document.get(key)
    if not isinstance(entries, list):
        raise InvalidInput(f"the signature has no list {key!r}", field=key)
    tensors = tuple(_tensor(entry, f"{key}[{index}]") for index, entry in enumerate(entries))
    names = [tensor.name for tensor in tensors]
    if twice := {name for name in names if names.count(name) > 1}:
        raise InvalidInput(f"the signature's {key} have {min(twice)!r} twice", field=key)
    return tensors


def _tensor(entry: object, field: str) -> Tensor:
    match entry:
        case {"name": str(name), "datatype": str(datatype), "shape": list(shape), **rest}:
            pass
        case _:
            raise InvalidInput(f"the signature's {field} is not of the form name, datatype, shape", field=field)
    if datatype not in DATATYPES:
        raise InvalidInput(f"the signature's {field} has datatype {datatype!r}, which V2 does not know", field=field)
    if not all(type(size) is int and size >= -1 for size in shape):
        raise InvalidInput(f"the signature's {field} has shape {shape!r}; expected whole numbers from -1", field=field)
    return Tensor(name, datatype, tuple(shape), rest.get("optional") is True)


def _tensor_json(tensor: Tensor) -> dict[str, object]:
    optional = {"optional": True} if tensor.optional else {}
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape), **optional}
