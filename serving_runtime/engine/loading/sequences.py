"""Sequence models: the tensors of a file that the scheduler supplies, and the initial state."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime.common.datatypes import BYTES, Array, Datatype
from serving_runtime.common.errors import ModelError
from serving_runtime.config.sequences import SequencePolicy, State
from serving_runtime.config.signature import Signature, TensorSpec

INITIAL_STATE_FOLDER = "initial_state"


def clients_side(config: Any, signature: Signature) -> Signature:
    """Return the inputs and outputs of clients, by a ModelConfig message as written.

    Control inputs, states and batch inputs are the scheduler's; a state output is the client's too where it is
    configured.
    """
    batching = config.sequence_batching
    ours = {control.name for control in batching.control_input} | {state.input_name for state in batching.state}
    ours |= {target for given in config.batch_input for target in given.target_name}
    states = {state.output_name for state in batching.state} - {tensor.name for tensor in config.output}
    return Signature(
        inputs=tuple(spec for spec in signature.inputs if spec.name not in ours),
        outputs=tuple(spec for spec in signature.outputs if spec.name not in states),
    )


def check_schedulers_side(policy: SequencePolicy, signature: Signature, name: str) -> None:
    """Raise ModelError unless control inputs and states are tensors of the model's file, equal in type and shape."""
    inputs = {spec.name: spec for spec in signature.inputs}
    outputs = {spec.name: spec for spec in signature.outputs}
    batch = (-1,) if policy.max_batch_size else ()
    where = f"model '{name}': sequence_batching"
    for control in policy.controls:
        _check(inputs, control.name, control.datatype, (*batch, 1), f"{where}: control_input '{control.name}'")
    for state in policy.states:
        _check(inputs, state.input_name, state.datatype, (*batch, *state.dims), f"{where}: state '{state.input_name}'")
        _check(
            outputs, state.output_name, state.datatype, (*batch, *state.dims), f"{where}: state '{state.output_name}'"
        )


def initial_states(policy: SequencePolicy, folder: Path, name: str) -> dict[str, Array]:
    """Return the first state by the name of its input, in the shape of one request.

    Args:
        folder: of the model; files are in its folder initial_state.

    Raises ModelError for a file that is missing or of another size.
    """
    return {state.input_name: _initial(state, policy, folder / INITIAL_STATE_FOLDER, name) for state in policy.states}


def _check(specs: Mapping[str, TensorSpec], name: str, datatype: Datatype, shape: tuple[int, ...], where: str) -> None:
    spec = specs.get(name)
    if spec is None:
        raise ModelError(f"{where}: the model's file has no such tensor; it has {', '.join(sorted(specs))}")
    if spec.datatype is not datatype:
        raise ModelError(f"{where} is {datatype.config_name}, but {spec.datatype.config_name} in the model's file")
    fits = len(spec.shape) == len(shape) and all(
        inner in (dim, -1) or dim == -1 for dim, inner in zip(shape, spec.shape, strict=True)
    )
    if not fits:
        raise ModelError(f"{where} has shape {list(shape)}, but {list(spec.shape)} in the model's file")


def _initial(state: State, policy: SequencePolicy, folder: Path, name: str) -> Array:
    shape = (1, *state.initial_dims) if policy.max_batch_size else state.initial_dims
    if not state.initial_file:
        return np.full(shape, b"", object) if state.datatype is BYTES else np.zeros(shape, state.datatype.dtype)
    file = folder / state.initial_file
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelError(f"model '{name}': state '{state.input_name}': {file} cannot be read: {error}") from error
    array = np.zeros(shape, state.datatype.dtype)
    if len(content) != array.nbytes:
        raise ModelError(
            f"model '{name}': state '{state.input_name}': {file} has {len(content)} bytes, but {array.nbytes} are "
            f"{state.datatype.name} {list(state.initial_dims)}"
        )
    return np.frombuffer(content, state.datatype.dtype).reshape(shape)
