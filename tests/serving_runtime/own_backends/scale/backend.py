"""A backend of an operator's own: y = factor * x. The factor comes from the model's parameters or --backend-config.

Where the model's parameter `asks` is there, a request's parameter `times` multiplies its rows once more.

The parameter `log` names a file to which each run appends how many rows it had.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from serving_runtime.backends.base import Part
from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec

FP32 = DATATYPES["FP32"]


class Model:
    signature = Signature((TensorSpec("x", FP32, (-1, 2)),), (TensorSpec("y", FP32, (-1, 2)),))
    opsets: dict[str, int] = {}

    def __init__(self, factor: float, log: str | None) -> None:
        self._factor = np.float32(factor)
        self._log = log

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        if self._log is not None:
            with Path(self._log).open("a") as file:
                file.write(f"{len(inputs[0])}\n")
        return [inputs[0] * self._factor]

    def close(self) -> None: ...


class AskingModel(Model):
    def run_parts(self, inputs: Sequence[Array], parts: Sequence[Part]) -> list[Array]:
        times = np.repeat([float(part.parameters.get("times", 1)) for part in parts], [part.rows for part in parts])
        if (times == 0).any():
            raise BackendError("the model does not multiply by 0")
        return [array * times.astype("f4")[:, None] for array in self.run(inputs)]


class Scale:
    platform = ""
    default_filename = ""
    default_max_batch_size = 4

    def __init__(self) -> None:
        self._factor = "2"

    def configure(self, settings: Mapping[str, str]) -> None:
        self._factor = settings["factor"]

    def load(self, file: Path, options: BackendOptions) -> Model:
        factor = options.parameters.get("factor", self._factor)
        if factor == "none":
            raise ModelError("the factor must be a number")
        kind = AskingModel if "asks" in options.parameters else Model
        return kind(float(factor), options.parameters.get("log"))


BACKEND = Scale()
