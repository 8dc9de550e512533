"""Sequence batching: sequence_batching of config.pbtxt as frozen values: order and state of stateful requests.

Meaning of the fields is Triton's (model configuration, sequence batcher; implicit state management). All tensors are
without the batch dimension.
"""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.datatypes import BYTES, DATATYPES, Datatype
from serving_runtime.common.errors import ModelError
from serving_runtime.config.batching import check_preferred
from serving_runtime.config.tensors import datatype_of

DEFAULT_IDLE_US = 1_000_000

_FLAGS = {"int32_false_true": "INT32", "fp32_false_true": "FP32", "bool_false_true": "BOOL"}
_CORRELATION_DATATYPES = ("UINT64", "INT64", "UINT32", "INT32", "BYTES")


class ControlKind(enum.Enum):
    """Meaning of a control input."""

    START = "CONTROL_SEQUENCE_START"
    READY = "CONTROL_SEQUENCE_READY"
    END = "CONTROL_SEQUENCE_END"
    CORRID = "CONTROL_SEQUENCE_CORRID"


@dataclass(frozen=True, slots=True)
class Control:
    """One control input of a model, of one element per request.

    Attributes:
        false_true: the values for false and for true; empty for CORRID.
    """

    name: str
    kind: ControlKind
    datatype: Datatype
    false_true: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """An output of the model that is its input in the sequence's next request.

    Attributes:
        initial_dims: of the first request's state.
        initial_file: in the model's folder initial_state, its bytes; empty for zeros.
    """

    input_name: str
    output_name: str
    datatype: Datatype
    dims: tuple[int, ...]
    initial_dims: tuple[int, ...]
    initial_file: str = ""


@dataclass(frozen=True, slots=True)
class SequencePolicy:
    """How sequences are scheduled.

    Attributes:
        max_idle_us: after this long without a request a sequence is dropped.
        slots: sequences that one instance holds at a time.
        direct: a sequence keeps its row of the batch; else any row, oldest request first.
        minimum_slot_utilization: of the direct strategy; share of the slots, 0 to 1, that need not wait for the delay.
        preferred_batch_sizes, preserve_ordering: of the oldest strategy.
    """

    max_batch_size: int
    max_idle_us: int
    slots: int
    direct: bool
    max_queue_delay_us: int
    minimum_slot_utilization: float
    preferred_batch_sizes: frozenset[int]
    preserve_ordering: bool
    controls: tuple[Control, ...]
    states: tuple[State, ...]

    @property
    def input_names(self) -> frozenset[str]:
        """Return the model's inputs that the scheduler provides, not the client."""
        return frozenset([*[control.name for control in self.controls], *[state.input_name for state in self.states]])

    @property
    def state_outputs(self) -> frozenset[str]:
        return frozenset(state.output_name for state in self.states)


def sequence_policy(config: Any) -> SequencePolicy | None:
    """Return the sequence batching of a ModelConfig message, None if unset; raises ModelError."""
    if not config.HasField("sequence_batching"):
        return None
    batching, limit = config.sequence_batching, config.max_batch_size
    where = f"model '{config.name}': sequence_batching"
    if config.model_transaction_policy.decoupled:
        raise ModelError(f"{where} of a decoupled model is not supported")
    rows = max(limit, 1)
    direct, oldest = batching.direct, batching.oldest
    is_direct = batching.WhichOneof("strategy_choice") != "oldest"
    if is_direct and not 0 <= direct.minimum_slot_utilization <= 1:
        raise ModelError(
            f"{where}: minimum_slot_utilization must be in [0, 1], found {direct.minimum_slot_utilization}"
        )
    if not is_direct and oldest.max_candidate_sequences < 1:
        raise ModelError(f"{where}: max_candidate_sequences must be >= 1, found {oldest.max_candidate_sequences}")
    check_preferred(oldest.preferred_batch_size, rows, where)
    policy = SequencePolicy(
        max_batch_size=limit,
        max_idle_us=batching.max_sequence_idle_microseconds or DEFAULT_IDLE_US,
        slots=rows if is_direct else oldest.max_candidate_sequences,
        direct=is_direct,
        max_queue_delay_us=(direct if is_direct else oldest).max_queue_delay_microseconds,
        minimum_slot_utilization=direct.minimum_slot_utilization,
        preferred_batch_sizes=frozenset(oldest.preferred_batch_size),
        preserve_ordering=oldest.preserve_ordering,
        controls=tuple(_controls(batching.control_input, where)),
        states=tuple(_state(state, f"{where}: state '{state.input_name}'") for state in batching.state),
    )
    _check_names(config, policy, where)
    return policy


def _controls(messages: Any, where: str) -> Iterable[Control]:
    seen: set[ControlKind] = set()
    for message in messages:
        if not message.name:
            raise ModelError(f"{where} has a control_input without a name")
        if len(message.control) != 1:
            raise ModelError(f"{where}: control_input '{message.name}' must have one control")
        control = _control(message.name, message.control[0], f"{where}: control_input '{message.name}'")
        if control.kind in seen:
            raise ModelError(f"{where} has two control_inputs of kind {control.kind.value}")
        seen.add(control.kind)
        yield control


def _control(name: str, message: Any, where: str) -> Control:
    kind = ControlKind(type(message).DESCRIPTOR.enum_types_by_name["Kind"].values_by_number[message.kind].name)
    given = [field for field in _FLAGS if getattr(message, field)]
    if kind is ControlKind.CORRID:
        datatype = datatype_of(message, where)
        if given or datatype.name not in _CORRELATION_DATATYPES:
            known = ", ".join(DATATYPES[known].config_name for known in _CORRELATION_DATATYPES)
            raise ModelError(
                f"{where}: a correlation id needs a data_type of {known}, and no values for false and true"
            )
        return Control(name, kind, datatype)
    if len(given) != 1 or message.data_type:
        raise ModelError(f"{where} must have one of {', '.join(_FLAGS)}, and no data_type")
    values = tuple(getattr(message, given[0]))
    if len(values) != 2:
        raise ModelError(f"{where}: {given[0]} must have two values, found {list(values)}")
    return Control(name, kind, DATATYPES[_FLAGS[given[0]]], values)


def _state(message: Any, where: str) -> State:
    if not (message.input_name and message.output_name):
        raise ModelError(f"{where} must have an input_name and an output_name")
    datatype = datatype_of(message, where)
    dims = tuple(message.dims)
    if not dims or any(dim < 1 and dim != -1 for dim in dims):
        raise ModelError(f"{where}: dims must be >= 1, or -1 for a variable dimension, found {list(dims)}")
    if len(message.initial_state) > 1:
        raise ModelError(f"{where} has {len(message.initial_state)} initial_states; one is possible")
    initial_dims, file = tuple(1 if dim == -1 else dim for dim in dims), ""
    for initial in message.initial_state:
        initial_dims, file = _initial_dims(initial, datatype, dims, where), initial.data_file
    return State(message.input_name, message.output_name, datatype, dims, initial_dims, file)


def _initial_dims(message: Any, datatype: Datatype, dims: tuple[int, ...], where: str) -> tuple[int, ...]:
    """Return the checked dims of an initial_state; raises ModelError."""
    where = f"{where}: initial_state"
    if datatype_of(message, where) is not datatype:
        raise ModelError(f"{where} must have the state's data_type {datatype.config_name}")
    found = tuple(message.dims)
    fits = len(found) == len(dims) and all(dim in (one, -1) for one, dim in zip(found, dims, strict=True) if one >= 1)
    if not fits or any(dim < 1 for dim in found):
        raise ModelError(f"{where} must have fixed dims that fit the state's {list(dims)}, found {list(found)}")
    if message.WhichOneof("state_data") is None:
        raise ModelError(f"{where} must have zero_data or data_file")
    if message.data_file and datatype is BYTES:
        raise ModelError(f"{where}: data_file is not supported for {BYTES.config_name}; use zero_data")
    file = message.data_file
    if file and ("/" in file or file in (".", "..")):
        raise ModelError(f"{where}: data_file '{file}' must be a plain file name in the model's folder initial_state")
    return found


def _check_names(config: Any, policy: SequencePolicy, where: str) -> None:
    """Raise ModelError for an input with two sources: client and scheduler, or two of the scheduler's."""
    names = [*[control.name for control in policy.controls], *[state.input_name for state in policy.states]]
    twice = {name for name in names if names.count(name) > 1} | ({tensor.name for tensor in config.input} & set(names))
    if twice:
        raise ModelError(f"{where}: '{min(twice)}' is given by the scheduler; it cannot be another input too")
    outputs = [state.output_name for state in policy.states]
    if len(set(outputs)) != len(outputs):
        raise ModelError(f"{where}: two states have the same output_name")
