"""A decoupled backend: answers x = [n] with 0, 1 ... n-1, endlessly for a negative n.

Model parameters: `fail_at` k fails in place of response k; `width` sends each response that many times as wide;
`told` names a file to which it appends a line when it is told to stop; `crooked` sends the wrong datatype; `batched`
gives the tensors a batch dimension.
"""

from collections.abc import Sequence
from itertools import count
from pathlib import Path

import numpy as np

from serving_runtime.backends.base import Send
from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import BackendError, Cancelled
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec

INT32 = DATATYPES["INT32"]


class Model:
    opsets: dict[str, int] = {}

    def __init__(self, options: BackendOptions) -> None:
        batch = (-1,) if "batched" in options.parameters else ()
        self.signature = Signature((TensorSpec("x", INT32, (*batch, 1)),), (TensorSpec("y", INT32, (*batch, -1)),))
        self._fail_at = int(options.parameters.get("fail_at", -1))
        self._width = int(options.parameters.get("width", 1))
        self._told = options.parameters.get("told")
        self._dtype = np.float64 if "crooked" in options.parameters else np.int32

    def stream(self, inputs: Sequence[Array], send: Send) -> None:
        wanted = int(inputs[0].ravel()[0])
        try:
            for number in count() if wanted < 0 else range(wanted):
                if number == self._fail_at:
                    raise BackendError(f"the model failed at {number}")
                send([np.full((*inputs[0].shape[:-1], self._width), number, self._dtype)])
        except Cancelled:
            if self._told is not None:
                with Path(self._told).open("a") as file:
                    file.write(f"{number}\n")
            raise

    def close(self) -> None: ...


class Repeat:
    platform = ""
    default_filename = ""
    default_max_batch_size = 0

    def load(self, file: Path, options: BackendOptions) -> Model:
        return Model(options)


BACKEND = Repeat()
