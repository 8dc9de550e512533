"""Tabular models: rows of features in, rows of predictions out.

Their files name no tensors. The names are FIL's, `input__0` and `output__0`, unless config.pbtxt lists tensors.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from serving_runtime.backends.parameters import one_line
from serving_runtime.common.datatypes import BYTES, DATATYPES, Array, Datatype
from serving_runtime.common.errors import BackendError, ModelError, ServingError
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import WrittenTensor

FP32, FP64 = DATATYPES["FP32"], DATATYPES["FP64"]

Predict = Callable[[Array], Sequence[Array]]
"""From [rows, features] to the outputs, each [rows, width]; raises what its library raises."""


class TabularModel:
    """One model, run by its library."""

    def __init__(self, signature: Signature, predict: Predict) -> None:
        self.signature = signature
        self.opsets: dict[str, int] = {}
        self._predict: Predict | None = predict
        self._dtypes = [spec.datatype.dtype for spec in signature.outputs]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        assert self._predict is not None, "a closed model is not run"  # noqa: S101
        try:
            found = self._predict(inputs[0])
            return [_typed(array, dtype) for array, dtype in zip(found, self._dtypes, strict=True)]
        except ServingError:
            raise
        except Exception as error:  # the libraries' exceptions share no base class
            raise BackendError(f"the model failed: {one_line(error)}") from error

    def close(self) -> None:
        self._predict = None


def input_spec(
    written: Sequence[WrittenTensor], features: int, default: Datatype, allowed: Sequence[Datatype]
) -> TensorSpec:
    """Return the single input, with config.pbtxt's name and datatype; raises ModelError."""
    if len(written) > 1:
        raise ModelError(f"it has one input, the rows of features; config.pbtxt lists {len(written)}")
    name = written[0].name if written else "input__0"
    datatype = (written[0].datatype if written else None) or default
    if datatype not in allowed:
        names = " or ".join(known.config_name for known in allowed)
        raise ModelError(f"input '{name}' is {datatype.config_name} in config.pbtxt; it can be {names}")
    return TensorSpec(name, datatype, (-1, features))


def one_output(written: Sequence[WrittenTensor], width: int, allowed: Sequence[Datatype]) -> TensorSpec:
    """Return the single output, [rows, width], with config.pbtxt's name and datatype; raises ModelError.

    Args:
        allowed: the first is the default datatype.
    """
    if len(written) > 1:
        raise ModelError(f"it has one output; config.pbtxt lists {len(written)}")
    name = written[0].name if written else "output__0"
    datatype = (written[0].datatype if written else None) or allowed[0]
    if datatype not in allowed:
        names = " or ".join(known.config_name for known in allowed)
        raise ModelError(f"output '{name}' is {datatype.config_name} in config.pbtxt; it can be {names}")
    return TensorSpec(name, datatype, (-1, width))


def _typed(array: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == BYTES.dtype:
        return as_bytes(array)
    return np.ascontiguousarray(array, dtype)


def as_bytes(array: Array) -> Array:
    """Return text labels as BYTES elements."""
    flat = np.empty(array.size, dtype=object)
    flat[:] = [element if isinstance(element, bytes) else str(element).encode() for element in array.ravel()]
    return flat.reshape(array.shape)
