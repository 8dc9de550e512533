"""Inputs and outputs of config.pbtxt: dims as clients see them, reshape as in the model's file."""

from dataclasses import dataclass
from typing import Any

from serving_runtime.common.datatypes import FROM_CONFIG_NAME, Datatype
from serving_runtime.common.errors import ModelError
from serving_runtime.proto import DATA_TYPES

VARIABLE = -1

_IMAGE_RANK = 3


@dataclass(frozen=True, slots=True)
class ModelTensor:
    """An input or output as clients see it, batch dimension left out of `dims`; -1 is variable.

    Attributes:
        reshape: the dims in the model's file; None where they equal `dims`.
        optional: an input that a request may leave out.
    """

    name: str
    datatype: Datatype
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class WrittenTensor:
    """An input or output as far as the config declares it, for files that do not declare all about their tensors.

    Attributes:
        datatype: None if unset.
        shape: of the file's tensor without the batch dimension; empty if unset.
    """

    name: str
    datatype: Datatype | None
    shape: tuple[int, ...]


def written_tensors(messages: Any) -> tuple[WrittenTensor, ...]:
    """Return the tensors of repeated ModelInput or ModelOutput messages, unchecked."""
    return tuple(_written(message) for message in messages)


def _written(message: Any) -> WrittenTensor:
    value = DATA_TYPES.values_by_number.get(message.data_type)
    datatype = FROM_CONFIG_NAME.get(value.name) if value is not None else None
    shape = message.reshape.shape if message.HasField("reshape") else message.dims
    return WrittenTensor(message.name, datatype, tuple(shape))


def model_tensors(messages: Any, model: str, kind: str, *, batched: bool) -> tuple[ModelTensor, ...]:
    """Return the tensors of repeated ModelInput or ModelOutput messages; raises ModelError."""
    tensors: dict[str, ModelTensor] = {}
    for message in messages:
        if not message.name:
            raise ModelError(f"model '{model}': config.pbtxt has an {kind} without a name")
        if message.name in tensors:
            raise ModelError(f"model '{model}': {kind} '{message.name}' is configured twice")
        tensors[message.name] = _tensor(message, f"model '{model}': {kind} '{message.name}'", kind, batched=batched)
    return tuple(tensors.values())


def datatype_of(message: Any, where: str) -> Datatype:
    """Return the datatype in a message's data_type; raises ModelError where it is unset."""
    value = DATA_TYPES.values_by_number.get(message.data_type)
    datatype = FROM_CONFIG_NAME.get(value.name) if value is not None else None
    if datatype is None:
        raise ModelError(f"{where} must have a data_type")
    return datatype


def reshaped(shape: tuple[int, ...], pattern: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """Return `target` with its variable dimensions filled in, in order, from a shape that follows `pattern`.

    (2, 7, 3) with pattern (2, -1, 3) and target (-1, 6) is (7, 6).
    """
    variable = iter([found for found, dim in zip(shape, pattern, strict=True) if dim == VARIABLE])
    return tuple([next(variable) if dim == VARIABLE else dim for dim in target])


def _tensor(message: Any, where: str, kind: str, *, batched: bool) -> ModelTensor:
    datatype = datatype_of(message, where)
    dims = tuple(message.dims)
    is_scalar = not (dims or batched) and message.HasField("reshape") and not message.reshape.shape
    if not dims and not is_scalar:
        raise ModelError(f"{where}: dims must not be empty; use dims [1] and an empty reshape for one value per row")
    if any(dim < 1 and dim != VARIABLE for dim in dims):
        raise ModelError(f"{where}: dims must be >= 1, or -1 for a variable dimension, found {list(dims)}")
    reshape = tuple(message.reshape.shape) if message.HasField("reshape") else None
    if is_scalar:
        reshape = None
    if reshape is not None:
        _check_reshape(dims, reshape, where, batched=batched)
    is_input = kind == "input"
    if is_input and message.format and len(dims) != _IMAGE_RANK:
        raise ModelError(f"{where}: format NHWC or NCHW needs {_IMAGE_RANK} dims, found {list(dims)}")
    return ModelTensor(message.name, datatype, dims, reshape, is_input and message.optional)


def _check_reshape(dims: tuple[int, ...], reshape: tuple[int, ...], where: str, *, batched: bool) -> None:
    """Raise ModelError unless the dimensions between the variable ones hold as many elements on both sides."""
    if not reshape and not batched:
        raise ModelError(f"{where}: reshape to an empty shape needs max_batch_size > 0")
    if any(dim < 1 and dim != VARIABLE for dim in reshape) or _chunks(dims) != _chunks(reshape):
        raise ModelError(
            f"{where}: reshape {list(reshape)} must hold as many elements as dims {list(dims)}, "
            "between variable dimensions too"
        )


def _chunks(dims: tuple[int, ...]) -> list[int]:
    """Return the element counts before, between and after the variable dimensions."""
    counts = [1]
    for dim in dims:
        if dim == VARIABLE:
            counts.append(1)
        else:
            counts[-1] *= dim
    return counts
