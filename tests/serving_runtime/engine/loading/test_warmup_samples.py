"""Warm-up samples run before a model is ready, and refuse it when they fail."""

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.inspection.model import inspect
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import engine_of, infer, output

pytestmark = pytest.mark.feature("C11")

OWN = Path(__file__).parents[2] / "own_backends"


def sample(inputs: str, **fields: object) -> str:
    text = " ".join(f"{name}: {value}" for name, value in fields.items())
    return f'model_warmup {{ name: "first" {text} inputs {{ key: "x" value {{ {inputs} }} }} }}'


def index_model(root: Path, config: str) -> Path:
    """A model that fails for an index outside of [-4, 3]."""
    folder = onnx_models.configure(root / "m", f"max_batch_size: 4 {config}")
    onnx_models.picky(folder / "1" / "model.onnx")
    return folder


async def refusal(root: Path) -> str:
    async with engine_of(root) as engine:
        with pytest.raises(ModelError) as error:
            await engine.load("m")
        assert [entry.state for entry in await engine.index(ready_only=False)] == ["UNAVAILABLE"]
        return str(error.value)


async def test_a_sample_that_the_model_cannot_take_refuses_the_load(tmp_path: Path) -> None:
    folder = index_model(tmp_path, sample('data_type: TYPE_INT64 dims: 1 input_data_file: "index"', batch_size=2))
    (folder / "warmup").mkdir()
    np.array([0, 77], "<i8").tofile(folder / "warmup" / "index")
    assert "model 'm' version 1: model_warmup 'first' failed: the model failed" in await refusal(tmp_path)
    np.array([0, 3], "<i8").tofile(folder / "warmup" / "index")
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        assert engine.model_ready("m")


@pytest.mark.parametrize("filling", ["zero_data", "random_data"])
@pytest.mark.parametrize("kind", ["FLOAT", "INT8", "BOOL", "STRING", "DOUBLE", "BFLOAT16"])
async def test_samples_of_zeros_and_of_random_data_fit_every_kind_of_input(
    tmp_path: Path, kind: str, filling: str
) -> None:
    names = {"FLOAT": "FP32", "DOUBLE": "FP64", "BFLOAT16": "BF16"}
    text = sample(f"data_type: TYPE_{names.get(kind, kind)} dims: [2] {filling}: true", batch_size=3, count=2)
    folder = onnx_models.configure(tmp_path / "m", f"max_batch_size: 4 {text}")
    onnx_models.identity(folder / "1" / "model.onnx", TensorProto.DataType.Value(kind), ("N", 2))
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        assert engine.model_ready("m")


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        pytest.param("data_type: TYPE_INT32 dims: 1 zero_data: true", "data-type is 'INT32'", id="another datatype"),
        pytest.param("data_type: TYPE_INT64 dims: 2 zero_data: true", "unexpected shape for input 'x'", id="a shape"),
        pytest.param("data_type: TYPE_INT64 dims: -1 zero_data: true", "dims must be fixed", id="variable dims"),
        pytest.param("dims: 1 zero_data: true", "must have a data_type", id="no datatype"),
        pytest.param("data_type: TYPE_INT64 dims: 1", "must have zero_data, random_data or", id="no data"),
        pytest.param(
            'data_type: TYPE_INT64 dims: 1 input_data_file: "../x"', "must be a plain file name", id="a file elsewhere"
        ),
        pytest.param(
            'data_type: TYPE_INT64 dims: 1 input_data_file: "x"', "cannot be read: No such file", id="no file"
        ),
    ],
)
async def test_a_sample_that_does_not_fit_the_model_refuses_the_load(
    tmp_path: Path, inputs: str, sentence: str
) -> None:
    index_model(tmp_path, sample(inputs))
    assert sentence in await refusal(tmp_path)


async def test_the_rest_of_a_sample_is_checked_too(tmp_path: Path) -> None:
    good = "data_type: TYPE_INT64 dims: 1 zero_data: true"
    folder = index_model(tmp_path, sample(good, batch_size=5))
    assert "batch_size must be in [1, 4], found 5" in await refusal(tmp_path)
    onnx_models.configure(folder, 'max_batch_size: 4 model_warmup { name: "first" }')
    assert "input 'x' is missing" in await refusal(tmp_path)
    (folder / "warmup").mkdir()
    (folder / "warmup" / "x").write_bytes(b"123")
    file = 'data_type: TYPE_INT64 dims: 1 input_data_file: "x"'
    onnx_models.configure(folder, f"max_batch_size: 4 {sample(file)}")
    assert "needs 8 bytes" in await refusal(tmp_path)


async def test_the_backend_runs_a_sample_as_often_as_it_says(tmp_path: Path) -> None:
    """The operator's backend of the tests writes a line per run."""
    log = tmp_path / "runs"
    text = sample("data_type: TYPE_FP32 dims: 2 random_data: true", batch_size=2, count=3)
    parameter = f"""parameters {{ key: "log" value {{ string_value: "{log}" }} }}
        parameters {{ key: "factor" value {{ string_value: "2" }} }}"""
    folder = onnx_models.configure(tmp_path / "models" / "m", f'backend: "scale" max_batch_size: 4 {parameter} {text}')
    (folder / "1").mkdir()
    async with engine_of(tmp_path / "models", backend_directory=OWN) as engine:
        await engine.load("m")
        assert log.read_text().splitlines()[:3] == ["2", "2", "2"], "rows of each run"
        assert output(await infer(engine, "m", width=2)).tolist() == [[2, 2]]


async def test_a_decoupled_model_is_warmed_up_by_a_whole_stream(tmp_path: Path) -> None:
    def configured(fail_at: int) -> None:
        config = f'''
            backend: "repeat" model_transaction_policy {{ decoupled: true }}
            parameters {{ key: "fail_at" value {{ string_value: "{fail_at}" }} }}
            model_warmup {{ name: "first" inputs {{ key: "x" value {{
                data_type: TYPE_INT32 dims: 1 input_data_file: "three" }} }} }}'''
        onnx_models.configure(tmp_path / "m", config)

    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "warmup").mkdir()
    np.array([3], "<i4").tofile(tmp_path / "m" / "warmup" / "three")
    async with engine_of(tmp_path, backend_directory=OWN) as engine:
        configured(2)
        with pytest.raises(ModelError, match="model_warmup 'first' failed: the model failed at 2"):
            await engine.load("m")
        configured(3)
        await engine.load("m")


def test_a_folder_whose_samples_fail_is_told_as_one_that_cannot_be_served(tmp_path: Path) -> None:
    folder = index_model(tmp_path, sample('data_type: TYPE_INT64 dims: 1 input_data_file: "nowhere"'))
    with pytest.raises(ModelError, match="model_warmup 'first' failed"):
        inspect(folder)


@pytest.mark.parametrize(
    ("content", "fits"),
    [
        pytest.param(b"\x01\0\0\0a\0\0\0\0", True, id="two texts, one empty"),
        pytest.param(b"\x01\0\0\0a", False, id="one too few"),
        pytest.param(b"\x01\0\0\0a\0\0\0\0\0\0\0\0", False, id="one too many"),
        pytest.param(b"\x01\0\0\0a\x09\0\0\0b", False, id="one cut short"),
        pytest.param(b"\x01\0\0\0a\0\0", False, id="half a length"),
    ],
)
async def test_texts_come_from_a_file_as_they_come_in_requests(tmp_path: Path, content: bytes, fits: bool) -> None:
    text = sample('data_type: TYPE_STRING dims: [2] input_data_file: "texts"')
    folder = onnx_models.configure(tmp_path / "m", f"max_batch_size: 4 {text}")
    onnx_models.identity(folder / "1" / "model.onnx", TensorProto.STRING, ("N", 2))
    (folder / "warmup").mkdir()
    (folder / "warmup" / "texts").write_bytes(content)
    if not fits:
        assert "does not hold 2 elements" in await refusal(tmp_path)
        return
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        assert engine.model_ready("m")
