"""A model's signature (names, V2 datatypes, shapes of its tensors) and whether one can stand in for another. Pure.

A signature is stored as the JSON that the runtime's `inspect` prints: `{"inputs": [tensor, ...], "outputs": [...]}`
with `{"name", "datatype", "shape"}` for each tensor; a dimension of -1 takes any size, the batch dimension is first.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import InvalidInput

# V2: tensor data types.
DATATYPES = frozenset(
    "BOOL UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FP16 BF16 FP32 FP64 BYTES".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Tensor:
    """One input or output; a dimension of -1 takes any size."""

    name: str
    datatype: str
    shape: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a model takes and gives, in the model's own order."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def as_json(self) -> dict[str, list[dict[str, object]]]:
        """Return the form that is stored and shown."""
        return {
            "inputs": [_tensor_json(tensor) for tensor in self.inputs],
            "outputs": [_tensor_json(tensor) for tensor in self.outputs],
        }


def parse(document: Mapping[str, object]) -> Signature:
    """Return the signature in `document`; other keys of it are left alone.

    Raises:
        InvalidInput: a part is missing or has another form.
    """
    return Signature(_tensors(document, "inputs"), _tensors(document, "outputs"))


def mismatches(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """Return why clients of `old` could not go on with `new`, one sentence each; empty where they can.

    Every input the clients send must be taken, no other may be needed, and every output they read must come as before.
    `new` may take more sizes than `old`, give outputs besides, and give fixed sizes where `old` said any.
    """
    before, after = parse(old), parse(new)
    found: list[str] = []
    offered = {tensor.name: tensor for tensor in after.inputs}
    for tensor in before.inputs:
        found += _input_mismatch(tensor, offered.pop(tensor.name, None))
    found += [f"input {name!r} is needed but was not before" for name in offered]
    given = {tensor.name: tensor for tensor in after.outputs}
    for tensor in before.outputs:
        found += _output_mismatch(tensor, given.get(tensor.name))
    return found


def _input_mismatch(old: Tensor, new: Tensor | None) -> list[str]:
    if new is None:
        return [f"input {old.name!r} is missing"]
    if new.datatype != old.datatype:
        return [f"input {old.name!r} has datatype {new.datatype}, expected {old.datatype}"]
    if not _covers(new.shape, old.shape):
        return [f"input {old.name!r} has shape {_shape(new)}, expected {_shape(old)}"]
    return []


def _output_mismatch(old: Tensor, new: Tensor | None) -> list[str]:
    if new is None:
        return [f"output {old.name!r} is missing"]
    if new.datatype != old.datatype:
        return [f"output {old.name!r} has datatype {new.datatype}, expected {old.datatype}"]
    if not _covers(old.shape, new.shape):
        return [f"output {old.name!r} has shape {_shape(new)}, expected {_shape(old)}"]
    return []


def _covers(wide: Sequence[int], narrow: Sequence[int]) -> bool:
    """Return whether every shape that fits `narrow` fits `wide`."""
    return len(wide) == len(narrow) and all(w in (-1, n) for w, n in zip(wide, narrow, strict=True))


def _shape(tensor: Tensor) -> str:
    return "[" + ",".join(map(str, tensor.shape)) + "]"


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
        case {"name": str(name), "datatype": str(datatype), "shape": list(shape)}:
            pass
        case _:
            raise InvalidInput(f"the signature's {field} is not of the form name, datatype, shape", field=field)
    if datatype not in DATATYPES:
        raise InvalidInput(f"the signature's {field} has datatype {datatype!r}, which V2 does not know", field=field)
    if not all(type(size) is int and size >= -1 for size in shape):
        raise InvalidInput(f"the signature's {field} has shape {shape!r}; expected whole numbers from -1", field=field)
    return Tensor(name, datatype, tuple(shape))


def _tensor_json(tensor: Tensor) -> dict[str, object]:
    return {"name": tensor.name, "datatype": tensor.datatype, "shape": list(tensor.shape)}
