"""PyTorch models: what a file says, what the config must say, devices, and what is code."""

import dataclasses
import warnings
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.backends import registry
from serving_runtime.common.datatypes import BF16
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config import text
from serving_runtime.config.model import BackendOptions
from tests.serving_runtime.onnx_models import configure

torch = pytest.importorskip("torch", reason="torch is not installed: pip install 'fairlead[torch]'")

pytestmark = pytest.mark.torch

ANY = torch.export.Dim("batch", min=1)


class Pair(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return a + b, a - b


class Named(torch.nn.Module):
    def forward(self, a: torch.Tensor, *, b: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": a + b, "difference": a - b}


class Doubling(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mul_(2)


class Twice(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def scripted(tmp_path: Path, module: torch.nn.Module) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(module), tmp_path / "model.pt")
    return tmp_path / "model.pt"


def exported(tmp_path: Path, module: torch.nn.Module, *given, **named) -> Path:
    shapes = [{0: ANY} for _ in (*given, *named)]
    program = torch.export.export(module, given, named or None, dynamic_shapes=shapes)
    torch.export.save(program, tmp_path / "model.pt2")
    return tmp_path / "model.pt2"


def load(file: Path, config: str = "", *, allow: bool = True, gpu: int | None = None):
    written = text.read(configure(file.parent / "m", config) / "config.pbtxt", "m")
    written.backend = "pytorch"
    options = BackendOptions.from_message(written)
    options = dataclasses.replace(options, allow_python_models=allow, gpu=gpu)
    return registry.find("pytorch", None, {}).load(file, options)


def tensors(kind: str, *names: str, data_type: str = "TYPE_FP32") -> str:
    return " ".join(f'{kind} {{ name: "{name}" data_type: {data_type} dims: [2] }}' for name in names)


A, B = np.array([[1, 2]], "f4"), np.array([[10, 20]], "f4")


@pytest.mark.feature("B4")
@pytest.mark.parametrize(
    ("inputs", "outputs", "given", "expected"),
    [
        pytest.param(("INPUT__0", "INPUT__1"), ("OUTPUT__0", "OUTPUT__1"), (A, B), ([11, 22], [-9, -18]), id="numbers"),
        pytest.param(("INPUT__1", "INPUT__0"), ("OUTPUT__1", "OUTPUT__0"), (A, B), ([11, 22], [-9, -18]), id="turned"),
        pytest.param(("b", "a"), ("sum", "difference"), (A, B), ([11, 22], [-9, -18]), id="names of arguments"),
        pytest.param(("left", "right"), ("sum", "difference"), (A, B), ([11, 22], [-9, -18]), id="as they are listed"),
    ],
)
def test_torchscripts_tensors_are_found_by_name_by_number_or_in_order(
    tmp_path: Path, inputs, outputs, given, expected
) -> None:
    config = f"max_batch_size: 4 {tensors('input', *inputs)} {tensors('output', *outputs)}"
    model = load(scripted(tmp_path, Pair()), config)
    assert {spec.name for spec in model.signature.inputs} == set(inputs)
    found = model.run(list(given))
    assert [array[0].tolist() for array in found] == list(expected)


def test_torchscript_without_a_config_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="TorchScript says nothing of its tensors; list every input with data_type"):
        load(scripted(tmp_path, Twice()))
    with pytest.raises(ModelError, match="lists 2 inputs, the model has 1: x"):
        load(scripted(tmp_path, Twice()), f"max_batch_size: 4 {tensors('input', 'x', 'y')} {tensors('output', 'z')}")


def test_a_program_with_keywords_and_a_dict_of_answers_names_both(tmp_path: Path) -> None:
    file = exported(tmp_path, Named(), torch.ones(3, 2), b=torch.ones(3, 2))
    model = load(file)
    assert [(spec.name, spec.shape) for spec in model.signature.inputs] == [("a", (-1, 2)), ("b", (-1, 2))]
    assert [spec.name for spec in model.signature.outputs] == ["sum", "difference"]
    assert [array.tolist() for array in model.run([A, B])] == [[[11, 22]], [[-9, -18]]]


def test_the_config_may_name_a_programs_tensors_anew(tmp_path: Path) -> None:
    file = exported(tmp_path, Twice(), torch.ones(3, 2))
    model = load(file, 'input { name: "INPUT__0" } output { name: "OUTPUT__0" }')
    assert [spec.name for spec in (*model.signature.inputs, *model.signature.outputs)] == ["INPUT__0", "OUTPUT__0"]


def test_a_model_that_writes_its_input_leaves_the_requests_bytes_alone(tmp_path: Path) -> None:
    script = load(scripted(tmp_path, Doubling()), f"max_batch_size: 4 {tensors('input', 'x')} {tensors('output', 'y')}")
    program = load(exported(tmp_path, Doubling(), torch.ones(3, 2)))
    for model in (script, program):
        given = np.frombuffer(A.tobytes(), "f4").reshape(1, 2)
        assert model.run([given])[0].tolist() == [[2, 4]]
        assert given.tolist() == [[1, 2]]


def test_bf16_goes_in_and_comes_out_as_its_bits(tmp_path: Path) -> None:
    model = load(exported(tmp_path, Twice(), torch.ones(3, 2, dtype=torch.bfloat16)))
    assert model.signature.inputs[0].datatype is BF16
    bits = np.array([[0x3F80, 0x4000]], "<u2")  # 1 and 2
    assert model.run([bits])[0].tolist() == [[0x4000, 0x4080]]


def test_an_output_of_another_datatype_than_configured_is_the_models_error(tmp_path: Path) -> None:
    config = f"max_batch_size: 4 {tensors('input', 'x')} {tensors('output', 'y', data_type='TYPE_INT64')}"
    with pytest.raises(BackendError, match=r"output 'y' is torch\.float32, not INT64 as config\.pbtxt has it"):
        load(scripted(tmp_path, Twice()), config).run([A])


def test_programs_are_code_and_opened_only_where_that_is_allowed(tmp_path: Path) -> None:
    for file in (exported(tmp_path, Twice(), torch.ones(3, 2)), scripted(tmp_path, Twice())):
        with pytest.raises(ModelError, match=r"backend 'pytorch' opens programs .*; allow it by --allow-python-models"):
            load(file, allow=False)


def test_a_gpu_that_is_not_there_refuses_the_load(tmp_path: Path) -> None:
    file = exported(tmp_path, Twice(), torch.ones(3, 2))
    with pytest.raises(ModelError, match="instance_group asks for GPU 63; torch finds "):
        load(file, gpu=63)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [("8", "needs an instance_group of KIND_GPU"), ("8,many", "must be numbers as in 1,8,32, found '8,many'")],
)
def test_graphs_are_for_gpus_and_of_numbers(tmp_path: Path, value: str, sentence: str) -> None:
    file = exported(tmp_path, Twice(), torch.ones(3, 2))
    with pytest.raises(ModelError, match=sentence):
        load(file, f'parameters {{ key: "CUDA_GRAPH_BATCH_SIZES" value {{ string_value: "{value}" }} }}')
