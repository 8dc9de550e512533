"""Sequence inputs that the scheduler supplies: control inputs, and the implicit state of the last answer.

Every array has one row: shape [1, ...] for models with a batch dimension.
"""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np

from serving_runtime.common.datatypes import ABSENT, BYTES, Array
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.config.sequences import Control, ControlKind, SequencePolicy
from serving_runtime.config.signature import Signature
from serving_runtime.config.tensors import VARIABLE
from serving_runtime.scheduler.sequences.sequence import CorrelationId, LiveSequence, SequenceJob

_KEPT_NULLS = 64


class SequenceInputs:
    """Completes the arrays of requests in the order of the model's signature.

    Args:
        initial: the first state by the name of its input, in the shape of one request.
    """

    def __init__(self, policy: SequencePolicy, signature: Signature, initial: Mapping[str, Array], model: str) -> None:
        self._model = model
        inputs = {spec.name: position for position, spec in enumerate(signature.inputs)}
        outputs = {spec.name: position for position, spec in enumerate(signature.outputs)}
        self._shape = (1, 1) if policy.max_batch_size else (1,)
        self._flags = [
            (inputs[control.name], control.kind, *self._constants(control))
            for control in policy.controls
            if control.kind is not ControlKind.CORRID
        ]
        self._tag = next((control for control in policy.controls if control.kind is ControlKind.CORRID), None)
        self._tag_positions = [inputs[self._tag.name]] if self._tag is not None else []
        self._state_inputs = [inputs[state.input_name] for state in policy.states]
        self._state_outputs = [outputs[state.output_name] for state in policy.states]
        self._initial = [initial[state.input_name] for state in policy.states]
        self._variable = any(VARIABLE in state.dims for state in policy.states)
        self._nulls: dict[Hashable, SequenceJob] = {}

    def complete(self, job: SequenceJob, sequence: LiveSequence) -> None:
        """Put control inputs and state into a request's arrays."""
        arrays = list(job.arrays)
        on = {ControlKind.READY: True, ControlKind.START: job.start, ControlKind.END: job.end}
        for position, kind, false, true in self._flags:
            arrays[position] = true if on[kind] else false
        if sequence.tag is not None:
            arrays[self._tag_positions[0]] = sequence.tag
        state = self._initial if job.start or sequence.state is None else sequence.state
        for position, array in zip(self._state_inputs, state, strict=True):
            arrays[position] = array
        job.arrays = arrays

    def first_requests(self, arrays: Sequence[Array], rows: int) -> list[Array]:
        """Return a batch of `rows` requests with all inputs, each the first of a sequence."""
        job = SequenceJob(arrays, 1, None, _drop, 0)
        job.start = True
        self.complete(job, LiveSequence(0, self._tag_array(0)))
        completed = list(job.arrays)
        if len(self._shape) > 1:
            for position in [*[flag[0] for flag in self._flags], *self._state_inputs, *self._tag_positions]:
                completed[position] = np.repeat(completed[position], rows, axis=0)
        return completed

    def null(self, like: SequenceJob, key: Hashable) -> SequenceJob:
        """Return a filler for a row without a request: not READY, zeros in the shapes of a request's full arrays.

        Args:
            key: equal for requests of equal shapes.
        """
        null = self._nulls.get(key)
        if null is None:
            arrays = [array if array is ABSENT else _zeros_like(array) for array in like.arrays]
            for position, _, false, _ in self._flags:
                arrays[position] = false
            null = SequenceJob(arrays, 1, None, _drop, 0)
            null.null = True
            if len(self._nulls) < _KEPT_NULLS:
                self._nulls[key] = null
        return null

    def begin(self, correlation_id: CorrelationId) -> LiveSequence:
        """Return a new sequence; raises InvalidArgument for a correlation id that the model cannot take."""
        return LiveSequence(correlation_id, self._tag_array(correlation_id), self._state_key(self._initial))

    def keep(self, sequence: LiveSequence, outputs: Sequence[Array]) -> None:
        """Keep the state output of an answer for the sequence's next request."""
        if self._state_outputs:
            sequence.state = [outputs[position] for position in self._state_outputs]
            sequence.state_key = self._state_key(sequence.state)

    def _state_key(self, state: Sequence[Array]) -> Hashable:
        return tuple([array.shape for array in state]) if self._variable else None

    def _tag_array(self, correlation_id: CorrelationId) -> Array | None:
        control = self._tag
        if control is None:
            return None
        value: object = correlation_id
        if control.datatype is BYTES:
            value = str(correlation_id).encode()
        elif isinstance(correlation_id, str) or correlation_id > np.iinfo(control.datatype.dtype).max:
            raise InvalidArgument(
                f"sequence_id {correlation_id!r} does not fit input '{control.name}' of model '{self._model}', "
                f"which is {control.datatype.name}"
            )
        array = np.empty(self._shape, control.datatype.dtype)
        array[...] = value
        return array

    def _constants(self, control: Control) -> tuple[Array, Array]:
        false, true = (np.full(self._shape, value, control.datatype.dtype) for value in control.false_true)
        return false, true


def _zeros_like(array: Array) -> Array:
    return np.full_like(array, b"") if array.dtype == BYTES.dtype else np.zeros_like(array)


def _drop(_result: object) -> None:
    """Discard the result of a filler row."""
