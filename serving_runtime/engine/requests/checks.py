"""Request validation, compiled once per model so that a request pays for comparisons only."""

from collections.abc import Hashable, Sequence
from typing import TypeAlias

from serving_runtime.common.datatypes import ABSENT, Array, Datatype
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import Tensor
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.signature import Signature
from serving_runtime.config.tensors import VARIABLE, ModelTensor, reshaped

Selection: TypeAlias = tuple[tuple[ModelTensor, int], ...]
"""Outputs in the order of the answer, each with its position in the model's file."""

_KEPT_SELECTIONS = 64


class _Input:
    """Checks of one input.

    Attributes:
        fixed: the dims without the batch dimension when none is variable, else None.
        position: of the input in the model's file.
        optional: whether a request may omit it.
    """

    __slots__ = ("datatype", "dims", "fixed", "name", "optional", "position", "reshape")

    def __init__(self, tensor: ModelTensor, position: int) -> None:
        self.name = tensor.name
        self.datatype: Datatype = tensor.datatype
        self.dims = tensor.dims
        self.fixed = None if VARIABLE in tensor.dims else tensor.dims
        self.reshape = tensor.reshape
        self.position = position
        self.optional = tensor.optional

    def file_shape(self, dims: tuple[int, ...]) -> tuple[int, ...]:
        """Return the file's shape for a request's dims."""
        assert self.reshape is not None  # noqa: S101 - asked for inputs that have one
        return self.reshape if self.fixed is not None else reshaped(dims, self.dims, self.reshape)


class RequestPlan:
    """Checks requests against one model version and puts arrays into the order of its file.

    Batch dimension: for max_batch_size > 0 every shape has one more dimension in front than the configured dims.
    """

    def __init__(self, config: ModelConfig, signature: Signature) -> None:
        self._model = config.name
        self._max_batch_size = config.max_batch_size
        positions = {spec.name: position for position, spec in enumerate(signature.inputs)}
        self._inputs = {tensor.name: _Input(tensor, positions[tensor.name]) for tensor in config.inputs}
        self._optional = any(tensor.optional for tensor in config.inputs)
        self._no_arrays: list[Array] = [ABSENT] * len(signature.inputs)
        ragged = config.ragged.inputs if config.ragged is not None else frozenset()
        keyed = [tensor for tensor in config.inputs if tensor.name not in ragged]
        self._variable = self._optional or any(VARIABLE in tensor.dims for tensor in keyed)
        self._keyed = sorted(positions[tensor.name] for tensor in keyed)
        positions = {spec.name: position for position, spec in enumerate(signature.outputs)}
        self._outputs = {tensor.name: (tensor, positions[tensor.name]) for tensor in config.outputs}
        self._selections: dict[tuple[str, ...], Selection] = {(): tuple(self._outputs.values())}

    def arrange(self, tensors: Sequence[Tensor]) -> tuple[list[Array], int, Hashable]:
        """Return the arrays in the file's order, the number of rows, and the key of joinable requests.

        Raises InvalidArgument naming the input, what was found and what was expected.
        """
        if len(tensors) != len(self._inputs):
            self._check_counted(tensors)
        batched = self._max_batch_size
        rows = -1  # not known yet
        arrays = self._no_arrays.copy()
        for name, datatype, array in tensors:
            expected = self._inputs.get(name)
            if expected is None:
                raise self._unexpected(name)
            if datatype is not expected.datatype:
                raise InvalidArgument(
                    f"inference input '{name}' data-type is '{datatype.name}', but model '{self._model}' "
                    f"expects '{expected.datatype.name}'"
                )
            shape = array.shape
            dims = shape[1:] if batched else shape
            if (dims != expected.fixed and not _matches(dims, expected)) or (batched and not shape):
                raise self._misshaped(expected, shape)
            if batched and shape[0] != rows:
                if rows > 0:
                    raise InvalidArgument(
                        f"input '{name}' batch size {shape[0]} does not match other inputs' {rows} for '{self._model}'"
                    )
                rows = self._checked_rows(shape[0])
            if arrays[expected.position] is not ABSENT:
                raise InvalidArgument(f"input '{name}' is given twice for model '{self._model}'")
            if expected.reshape is not None:
                inner = expected.file_shape(dims)
                array = array.reshape((rows, *inner) if batched else inner)  # noqa: PLW2901
            arrays[expected.position] = array
        key = tuple([arrays[position].shape[1:] for position in self._keyed]) if self._variable else None
        return arrays, max(rows, 1), key

    def selection(self, names: tuple[str, ...]) -> Selection:
        """Return the outputs to answer with, all of them for no names.

        Raises InvalidArgument for an output that the model does not have or that is requested twice.
        """
        known = self._selections.get(names)
        if known is not None:
            return known
        for name in names:
            if name not in self._outputs:
                existing = ", ".join(f"'{existing}'" for existing in self._outputs)
                raise InvalidArgument(
                    f"unexpected inference output '{name}' for model '{self._model}'; its outputs are {existing}"
                )
        if len(set(names)) != len(names):
            raise InvalidArgument(f"an output of model '{self._model}' is requested twice")
        selection = tuple([self._outputs[name] for name in names])
        if len(self._selections) < _KEPT_SELECTIONS:
            self._selections[names] = selection
        return selection

    def select(self, selection: Selection, arrays: Sequence[Array]) -> tuple[Tensor, ...]:
        """Return the chosen arrays of the model's result, without absent ones."""
        return tuple(
            [self._output(tensor, arrays[position]) for tensor, position in selection if arrays[position] is not ABSENT]
        )

    def _output(self, tensor: ModelTensor, array: Array) -> Tensor:
        if tensor.reshape is not None:
            shape = array.shape
            batch, inner = (shape[:1], shape[1:]) if self._max_batch_size else ((), shape)
            array = array.reshape(batch + reshaped(inner, tensor.reshape, tensor.dims))
        return Tensor(tensor.name, tensor.datatype, array)

    def _checked_rows(self, rows: int) -> int:
        if not 1 <= rows <= self._max_batch_size:
            found = f"inference request batch-size must be <= {self._max_batch_size} for '{self._model}'"
            if not rows:
                raise InvalidArgument(f"{found} and >= 1, found 0")
            raise InvalidArgument(
                f"{found}, found {rows}; send fewer rows, or raise max_batch_size in its configuration"
            )
        return rows

    def _check_counted(self, tensors: Sequence[Tensor]) -> None:
        """Raise InvalidArgument unless only optional tensors are missing."""
        given = [tensor.name for tensor in tensors]
        for name in given:
            if name not in self._inputs:
                raise self._unexpected(name)
        missing = [name for name, expected in self._inputs.items() if name not in given and not expected.optional]
        if missing:
            raise InvalidArgument(
                f"expected {len(self._inputs)} inputs but got {len(given)} for model '{self._model}': "
                f"input '{missing[0]}' is missing"
            )
        if len(given) > len(self._inputs):
            raise InvalidArgument(f"an input is given twice for model '{self._model}'")

    def _unexpected(self, name: str) -> InvalidArgument:
        known = ", ".join(f"'{known}'" for known in self._inputs)
        return InvalidArgument(f"unexpected inference input '{name}' for model '{self._model}'; its inputs are {known}")

    def _misshaped(self, expected: _Input, shape: tuple[int, ...]) -> InvalidArgument:
        wanted = [-1, *expected.dims] if self._max_batch_size else list(expected.dims)
        return InvalidArgument(
            f"unexpected shape for input '{expected.name}' for model '{self._model}'. "
            f"Expected {wanted}, got {list(shape)}"
        )


def _matches(dims: tuple[int, ...], expected: _Input) -> bool:
    if expected.fixed is not None or len(dims) != len(expected.dims):
        return False
    return all(wanted in (-1, dim) for dim, wanted in zip(dims, expected.dims, strict=True))
