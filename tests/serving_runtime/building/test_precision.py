"""ONNX models in another precision, by ONNX Runtime's tools: what they answer, and what is refused."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from serving_runtime.building.precision import with_precision
from serving_runtime.common.errors import ModelError
from tests.serving_runtime import onnx_models

ROWS = np.random.default_rng(1).normal(size=(64, 8)).astype("f4")


def answers(file: Path):
    return onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"]).run(None, {"x": ROWS})[0]


def in_a_process_of_its_own(model: Path, precision: str, rows: Path, target: Path) -> None:
    """As build does it: ONNX Runtime's tools for FP16 and for INT8 do not go together in one process."""
    code = (
        "import sys; from pathlib import Path; from serving_runtime.building.precision import with_precision; "
        "with_precision(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4]))"
    )
    command = [sys.executable, "-c", code, str(model), precision, str(rows), str(target)]
    subprocess.run(command, check=True, timeout=120, capture_output=True)


def weights_of(file: Path) -> set[int]:
    return {weight.data_type for weight in onnx.load(file).graph.initializer if len(weight.dims) == 2}


@pytest.mark.parametrize(
    ("precision", "datatype", "error"),
    [
        ("fp32", onnx.TensorProto.FLOAT, 1e-6),
        ("fp16", onnx.TensorProto.FLOAT16, 0.02),
        ("int8", onnx.TensorProto.INT8, 0.2),
    ],
)
def test_weights_have_the_precision_and_answers_stay_close(
    tmp_path: Path, precision: str, datatype: int, error: float
) -> None:
    model = onnx_models.mlp(tmp_path / "model.onnx", (8, 16, 3))
    np.savez(tmp_path / "rows.npz", x=ROWS)
    in_a_process_of_its_own(model, precision, tmp_path / "rows.npz", tmp_path / "typed.onnx")
    assert weights_of(tmp_path / "typed.onnx") == {datatype}
    expected, found = answers(model), answers(tmp_path / "typed.onnx")
    assert found.dtype == np.float32, "inputs and outputs keep their datatypes"
    assert np.abs(found - expected).mean() < error * np.abs(expected).mean()


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (None, "int8 needs typical rows: give --calibration FILE.npz, or calibration.npz beside config.pbtxt"),
        ({"z": ROWS}, "--calibration rows.npz has z; the inputs are x"),
    ],
)
def test_calibration_rows_are_those_of_the_inputs(tmp_path: Path, arrays: dict | None, sentence: str) -> None:
    model = onnx_models.mlp(tmp_path / "model.onnx", (8, 16, 3))
    if arrays is not None:
        np.savez(tmp_path / "rows.npz", **arrays)
    file = tmp_path / "rows.npz" if arrays is not None else None
    with pytest.raises(ModelError, match=sentence):
        with_precision(model, "int8", file, tmp_path / "typed.onnx")


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ModelError, match=r"model\.onnx cannot be written as fp16: "):
        with_precision(tmp_path / "model.onnx", "fp16", None, tmp_path / "typed.onnx")
