"""Ragged batching: allow_ragged_batch, batch_input and batch_output of config.pbtxt (Triton: ragged batching)."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.datatypes import Datatype
from serving_runtime.common.errors import ModelError
from serving_runtime.config.tensors import datatype_of

_DATATYPES = ("INT32", "FP32")


class BatchInputKind(enum.Enum):
    """Content of an input that is computed for a batch."""

    ELEMENT_COUNT = "BATCH_ELEMENT_COUNT"
    ACCUMULATED_ELEMENT_COUNT = "BATCH_ACCUMULATED_ELEMENT_COUNT"
    ACCUMULATED_ELEMENT_COUNT_WITH_ZERO = "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO"
    MAX_ELEMENT_COUNT_AS_SHAPE = "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE"
    ITEM_SHAPE = "BATCH_ITEM_SHAPE"
    ITEM_SHAPE_FLATTEN = "BATCH_ITEM_SHAPE_FLATTEN"


@dataclass(frozen=True, slots=True)
class BatchInput:
    """Inputs of the model computed from the shapes of another one in the batch."""

    kind: BatchInputKind
    targets: tuple[str, ...]
    datatype: Datatype
    source: str


@dataclass(frozen=True, slots=True)
class BatchOutput:
    """Outputs of the model, flat for the whole batch, that are split by the shapes of an input."""

    targets: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class Ragged:
    """How requests of different shapes are joined.

    Attributes:
        inputs: passed to the model flat, requests concatenated.
    """

    inputs: frozenset[str]
    batch_inputs: tuple[BatchInput, ...]
    batch_outputs: tuple[BatchOutput, ...]


def ragged(config: Any) -> Ragged | None:
    """Return the ragged batching of a ModelConfig message, None if unset; raises ModelError."""
    names = frozenset(tensor.name for tensor in config.input if tensor.allow_ragged_batch)
    if not (names or config.batch_input or config.batch_output):
        return None
    where = f"model '{config.name}'"
    if config.max_batch_size < 1:
        raise ModelError(f"{where}: allow_ragged_batch, batch_input and batch_output need max_batch_size > 0")
    others = {
        "sequence_batching": config.HasField("sequence_batching"),
        "ensemble_scheduling": config.HasField("ensemble_scheduling"),
        "a decoupled model": config.model_transaction_policy.decoupled,
    }
    for other, found in others.items():
        if found:
            raise ModelError(f"{where}: ragged batching of {other} is not supported")
    for tensor in config.input:
        if tensor.name in names and (tensor.optional or tensor.HasField("reshape")):
            raise ModelError(
                f"{where}: input '{tensor.name}' has allow_ragged_batch; it cannot be optional or reshaped"
            )
    inputs, outputs = ({tensor.name for tensor in tensors} for tensors in (config.input, config.output))
    return Ragged(
        names,
        tuple(_batch_input(message, inputs, f"{where}: batch_input") for message in config.batch_input),
        tuple(_batch_output(message, inputs, outputs, f"{where}: batch_output") for message in config.batch_output),
    )


def _batch_input(message: Any, inputs: Iterable[str], where: str) -> BatchInput:
    kind = BatchInputKind(type(message).DESCRIPTOR.enum_types_by_name["Kind"].values_by_number[message.kind].name)
    if not message.target_name or set(message.target_name) & set(inputs):
        raise ModelError(f"{where} must have a target_name, which is no input of clients; found {_list(message)}")
    datatype = datatype_of(message, where)
    if datatype.name not in _DATATYPES:
        raise ModelError(f"{where}: data_type must be TYPE_INT32 or TYPE_FP32, found {datatype.config_name}")
    return BatchInput(kind, tuple(message.target_name), datatype, _source(message, inputs, where))


def _batch_output(message: Any, inputs: Iterable[str], outputs: Iterable[str], where: str) -> BatchOutput:
    if not message.target_name or not set(message.target_name) <= set(outputs):
        raise ModelError(f"{where} must have a target_name that is an output of the model; found {_list(message)}")
    return BatchOutput(tuple(message.target_name), _source(message, inputs, where))


def _source(message: Any, inputs: Iterable[str], where: str) -> str:
    if len(message.source_input) != 1 or message.source_input[0] not in inputs:
        found = ", ".join(f"'{name}'" for name in message.source_input) or "none"
        raise ModelError(f"{where} must have one source_input, an input of the model; found {found}")
    return str(message.source_input[0])


def _list(message: Any) -> str:
    return ", ".join(f"'{name}'" for name in message.target_name) or "none"
