"""What a model's folder and config say beside its tensors: which config, which backend, which files, which code."""

import hashlib
import shutil
import subprocess
from pathlib import Path

import pytest

from serving_runtime.common.errors import ModelError
from serving_runtime.engine.inspection.model import inspect
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.engines import engine_of, infer, output

OWN = Path(__file__).parents[2] / "own_backends"


def model(root: Path, name: str = "m", config: str = "") -> Path:
    onnx_models.mlp(onnx_models.configure(root / name, config) / "1" / "model.onnx", (4, 3))
    return root / name


async def refusal(root: Path, name: str = "m", **settings: object) -> str:
    async with engine_of(root, **settings) as engine:
        with pytest.raises(ModelError) as error:
            await engine.load(name)
        return str(error.value)


@pytest.mark.feature("C23")
async def test_a_config_by_name_goes_before_the_usual_one(tmp_path: Path) -> None:
    folder = model(tmp_path, config="max_batch_size: 2")
    (folder / "configs").mkdir()
    (folder / "configs" / "h100.pbtxt").write_text("max_batch_size: 7")
    for name, expected in (("", 2), ("h100", 7), ("h200", 2)):
        async with engine_of(tmp_path, config_name=name) as engine:
            await engine.load("m")
            assert engine.servable("m").config.max_batch_size == expected, name
    (folder / "configs" / "h100.pbtxt").write_text("max_batch_size: many")
    assert "h100.pbtxt line 1" in await refusal(tmp_path, config_name="h100")


@pytest.mark.feature("C3")
async def test_a_folder_may_name_its_backend_at_its_end(tmp_path: Path) -> None:
    (tmp_path / "m.scale" / "1").mkdir(parents=True)
    model(tmp_path, "net.v2")
    async with engine_of(tmp_path, backend_directory=OWN) as engine:
        await engine.load("m.scale")
        assert engine.servable("m.scale").message.backend == "scale"
        assert output(await infer(engine, "m.scale", width=2)).tolist() == [[2, 2]]
        await engine.load("net.v2")
        assert engine.servable("net.v2").message.backend == "onnxruntime", "v2 is no backend"
    assert "must name its backend" in await refusal(
        tmp_path, "m.scale", backend_directory=OWN, auto_complete=False
    ) or "must list every input" in await refusal(tmp_path, "m.scale", backend_directory=OWN, auto_complete=False)


@pytest.mark.feature("C22")
async def test_files_by_compute_capability_are_let_be_on_the_cpu(tmp_path: Path) -> None:
    model(tmp_path, config='cc_model_filenames { key: "9.0" value: "model_h100.onnx" }')
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        assert output(await infer(engine, "m")).shape == (1, 3)
    model(tmp_path, config='cc_model_filenames { key: "9.0" value: "../model.onnx" }')
    assert "cc_model_filenames '../model.onnx' must be a plain file name" in await refusal(tmp_path)


def checksum(key: str, value: str, agent: str = "checksum") -> str:
    parameter = f'parameters {{ key: "{key}" value: "{value}" }}'
    return f'model_repository_agents {{ agents {{ name: "{agent}" {parameter} }} }}'


@pytest.mark.feature("C22")
@pytest.mark.parametrize("kind", ["MD5", "SHA256"])
async def test_a_checksum_must_be_that_of_the_file(tmp_path: Path, kind: str) -> None:
    folder = model(tmp_path)
    digest = hashlib.new(kind, (folder / "1" / "model.onnx").read_bytes()).hexdigest()
    onnx_models.configure(folder, checksum(f"{kind}:1/model.onnx", digest.upper()))
    async with engine_of(tmp_path) as engine:
        await engine.load("m")
        assert output(await infer(engine, "m")).shape == (1, 3)
        onnx_models.mlp(folder / "1" / "model.onnx", (4, 5))
        with pytest.raises(ModelError, match=f"model 'm' version 1: mismatched {kind} checksum for file 1/model.onnx"):
            await engine.load("m")
        assert output(await infer(engine, "m")).shape == (1, 3), "the old model stays"
    with pytest.raises(ModelError, match="mismatched"):
        inspect(folder)


@pytest.mark.feature("C22")
@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param(
            checksum("MD5:1/nothing", "0"), "for file 1/nothing cannot be checked: No such file", id="no file"
        ),
        pytest.param(checksum("MD5:../x", "0"), "is not MD5:<file> or SHA256:<file>", id="a way out"),
        pytest.param(checksum("CRC:1/model.onnx", "0"), "is not MD5:<file> or SHA256:<file>", id="another sum"),
        pytest.param(checksum("a", "b", "other"), "agent 'other' is not supported", id="another agent"),
    ],
)
async def test_a_checksum_that_makes_no_sense_refuses_the_load(tmp_path: Path, config: str, sentence: str) -> None:
    model(tmp_path, config=config)
    assert sentence in await refusal(tmp_path)


def compiled(folder: Path, called: Path) -> None:
    """Compile a library of operators that makes a file when it is asked for them."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    code = called.with_suffix(".c")
    code.write_text(
        "#include <stdio.h>\nvoid *RegisterCustomOps(void *options, const void *api)"
        f'{{ FILE *file = fopen("{called}", "w"); fclose(file); return 0; }}'
    )
    folder.mkdir(parents=True)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "ops.so", code], check=True, timeout=60)


@pytest.mark.feature("C22")
async def test_libraries_of_operators_are_taken_from_the_operators_folder_only(tmp_path: Path) -> None:
    called, own, models = tmp_path / "called", tmp_path / "own" / "onnxruntime", tmp_path / "models"
    compiled(own, called)
    (own / "broken.so").write_text("no library")

    def with_library(name: str) -> None:
        model(models, config=f'model_operations {{ op_library_filename: "{name}" }}')

    with_library("ops.so")
    assert "is code; it must be in the folder onnxruntime of --backend-directory" in await refusal(models)
    for name in ("../ops.so", "/etc/passwd", "nothing.so"):
        with_library(name)
        assert "is not a file in" in await refusal(models, backend_directory=own.parent)
    with_library("broken.so")
    assert "op_library_filename 'broken.so' cannot be used" in await refusal(models, backend_directory=own.parent)
    assert not called.exists()
    with_library("ops.so")
    async with engine_of(models, backend_directory=own.parent) as engine:
        await engine.load("m")
        assert called.exists()


async def test_whatever_a_backend_throws_is_that_models_failure(tmp_path: Path) -> None:
    own = tmp_path / "own" / "odd"
    own.mkdir(parents=True)
    (own / "backend.py").write_text(
        'class Odd:\n    platform = default_filename = ""\n    default_max_batch_size = 0\n'
        "    def load(self, file, options):\n        raise ValueError('no luck')\nBACKEND = Odd()\n"
    )
    (onnx_models.configure(tmp_path / "models" / "m", 'backend: "odd"') / "1").mkdir()
    assert (
        await refusal(tmp_path / "models", backend_directory=own.parent)
        == "model 'm' version 1: its backend failed to load it: ValueError: no luck"
    )
