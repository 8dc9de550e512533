"""Precision conversion and quantization of an ONNX model, by ONNX Runtime's own tools; needs no GPU.

The result can be served, and plans are built from it: TensorRT 11 takes every type from the model and no longer has
calibrators (TensorRT: strongly typed networks). Weights become FP16, or quantize and dequantize operators are
inserted, with the ranges seen on calibration data.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import ModelError

VERSION: str = onnxruntime.__version__
PRECISIONS = ("fp32", "fp16", "int8")
Counted = Callable[[int, int], None]
"""Progress callback: rows run, and their total."""


def with_precision(
    model: Path, precision: str, calibration: Path | None, target: Path, counted: Counted = lambda *_: None
) -> None:
    """Write the model in a precision to `target`; its inputs and outputs keep their datatypes.

    Args:
        calibration: an .npz file with an array of rows for each input; for int8.
        counted: called as calibration proceeds.

    Raises ModelError.
    """
    try:
        if precision == "fp16":
            from onnxruntime.transformers.float16 import (  # noqa: PLC0415 - large
                convert_float_to_float16,
            )

            onnx.save(convert_float_to_float16(onnx.load(model), keep_io_types=True), target)
        elif precision == "int8":
            _quantize(model, _calibration(model, calibration), target, counted)
        else:
            onnx.save(onnx.load(model), target)
    except ModelError:
        raise
    except Exception as error:  # neither library has a base class of its own
        raise ModelError(
            f"{model.name} cannot be written as {precision}: {' '.join(str(error).split())[:500]}"
        ) from error


def _calibration(model: Path, file: Path | None) -> Mapping[str, Array]:
    if file is None:
        raise ModelError(
            "int8 needs typical rows: give --calibration FILE.npz, or calibration.npz beside config.pbtxt, with an "
            "array of rows for each input by its name"
        )
    graph = onnx.load(model, load_external_data=False).graph
    weights = {weight.name for weight in graph.initializer}
    wanted = [given.name for given in graph.input if given.name not in weights]
    try:
        with np.load(file) as arrays:
            found = {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError) as error:
        raise ModelError(f"--calibration {file} is no .npz file of arrays: {error}") from error
    if set(found) != set(wanted):
        raise ModelError(
            f"--calibration {file.name} has {', '.join(sorted(found))}; the inputs are {', '.join(wanted)}"
        )
    if any(array.ndim == 0 or not len(array) for array in found.values()):
        raise ModelError(f"--calibration {file.name} has an input without rows")
    if len({len(array) for array in found.values()}) > 1:
        raise ModelError(f"--calibration {file.name} has different numbers of rows for the inputs")
    return found


def _quantize(model: Path, rows: Mapping[str, Array], target: Path, counted: Counted) -> None:
    from onnxruntime import quantization  # noqa: PLC0415 - large

    count = len(next(iter(rows.values())))

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc] # the library has no types
        def __init__(self) -> None:
            self._row = 0

        def get_next(self) -> dict[str, Any] | None:
            row, self._row = self._row, self._row + 1
            counted(min(row, count), count)
            return {name: array[row : row + 1] for name, array in rows.items()} if row < count else None

    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True}  # TensorRT: zero points are 0
    quantization.quantize_static(
        onnx.load(model),  # given a path it would write beside the model, which may be read-only
        str(target),
        Reader(),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=quantization.QuantType.QInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
        extra_options=symmetric,
    )
