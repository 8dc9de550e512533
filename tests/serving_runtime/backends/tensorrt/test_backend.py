"""TensorRT plans: profiles, signatures, memory and errors, on a stand-in of the documented API at the seam."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from serving_runtime.backends import registry
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime.devices import nvidia

pytestmark = pytest.mark.feature("B5")

ONE = [[1.0], [1.0]]
ON_GPU = BackendOptions({}, gpu=0)


@pytest.fixture
def trt() -> Iterator[ModuleType]:
    with nvidia.machine("whole"):
        import tensorrt  # noqa: PLC0415

        yield tensorrt


def batches(*bounds: tuple[int, int]) -> list[dict[str, Any]]:
    return [{"x": ((low, 2), (low, 2), (high, 2))} for low, high in bounds]


def plan(trt: ModuleType, folder: Path, *bounds: tuple[int, int], dtype: str = "FLOAT", **other: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    content = trt.planned({"x": (dtype, (-1, 2))}, {"y": ("FLOAT", (-1, 1), ONE)}, batches(*bounds), **other)
    (folder / "model.plan").write_bytes(content)
    return folder / "model.plan"


def load(file: Path, options: BackendOptions = ON_GPU):
    return registry.find("tensorrt", None, {}).load(file, options)


def rows(count: int):
    return np.arange(count * 2, dtype="f4").reshape(count, 2)


def test_each_run_takes_the_first_profile_that_its_shapes_fit(trt: ModuleType, tmp_path: Path) -> None:
    file = plan(trt, tmp_path, (1, 2), (3, 8))
    model = load(file, dataclasses.replace(ON_GPU, profiles=("0", "1")))
    for count in (1, 8, 2, 3):
        assert model.run([rows(count)])[0].tolist() == rows(count).sum(1, keepdims=True).tolist()
    with pytest.raises(BackendError) as caught:
        model.run([rows(9)])
    assert str(caught.value) == (
        "the model failed: no optimization profile of the plan takes input 'x' [9, 2] (profile 0 takes [1, 2] to "
        "[2, 2]), 'x' [9, 2] (profile 1 takes [3, 2] to [8, 2])"
    )


def test_only_the_first_profile_is_used_where_none_is_listed(trt: ModuleType, tmp_path: Path) -> None:
    model = load(plan(trt, tmp_path, (1, 2), (3, 8)))
    with pytest.raises(BackendError, match="no optimization profile of the plan takes input 'x'"):
        model.run([rows(3)])


def test_its_largest_batch_is_the_profiles(trt: ModuleType, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    plan(trt, folder / "1", (1, 16), (17, 64))
    (folder / "config.pbtxt").write_text('instance_group { kind: KIND_GPU profile: ["0", "1"] }')
    settings = LoadSettings()
    wanted = load_model.plan(repository.model_folder(folder), settings)
    opened = load_model.open_versions(wanted, (1,), settings, {})[1]
    assert (opened.config.max_batch_size, opened.message.platform) == (64, "tensorrt_plan")
    assert list(opened.message.instance_group[0].gpus) == [0]
    assert opened.model.run([rows(64)])[0].shape == (64, 1)
    opened.model.close()


def test_all_memory_and_streams_are_given_back(trt: ModuleType, tmp_path: Path) -> None:
    from cuda.bindings import runtime  # noqa: PLC0415

    model = load(plan(trt, tmp_path, (1, 8)), dataclasses.replace(ON_GPU, instance_count=3))
    assert len(runtime.alive) == 3, "a stream for each instance"
    model.run([rows(2)])
    model.run([rows(8)])
    model.close()
    assert runtime.alive == set()


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (
            {"capability": "8.0"},
            "The engine plan file is generated on an incompatible device, expecting compute 9.0 got compute 8.0",
        ),
        (
            {"version": "10.3.0"},
            "is not compatible with this version of TensorRT, expecting library version 11.4.0.106 got 10.3.0",
        ),
    ],
    ids=["another GPU", "another TensorRT"],
)
def test_a_plan_that_was_built_elsewhere_says_where_to_build_it(
    trt: ModuleType, tmp_path: Path, other: dict[str, str], reason: str
) -> None:
    with pytest.raises(ModelError) as caught:
        load(plan(trt, tmp_path, (1, 8), **other))
    assert str(caught.value).startswith("model.plan cannot be loaded by TensorRT 11.4.0.106 on this GPU: ")
    assert reason in str(caught.value)
    assert str(caught.value).endswith("built by: rebuild it there")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"gpu": None}, "a TensorRT plan runs on a GPU, and this process has none"),
        ({"profiles": ("2",)}, "instance_group profile '2' is none of the plan's 1, numbered from 0"),
        ({"profiles": ("large",)}, "instance_group profile 'large' is none of the plan's 1, numbered from 0"),
    ],
)
def test_what_a_plan_cannot_do_refuses_the_load(
    trt: ModuleType, tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence):
        load(plan(trt, tmp_path, (1, 8)), dataclasses.replace(ON_GPU, **changed))


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        ({"dtype": "FP8"}, "input 'x' has type FP8, which the V2 protocol cannot carry"),
        ({"shape_tensors": ["x"]}, "input 'x' is a shape tensor, which this backend does not serve"),
    ],
)
def test_tensors_that_are_not_served_are_named(
    trt: ModuleType, tmp_path: Path, other: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ModelError, match=sentence):
        load(plan(trt, tmp_path, (1, 8), **other))


def test_a_device_without_memory_fails_the_run_alone(trt: ModuleType, tmp_path: Path) -> None:
    from cuda.bindings import runtime  # noqa: PLC0415

    model = load(plan(trt, tmp_path, (1, 8)))
    runtime._MOST_BYTES = 0
    with pytest.raises(BackendError, match="the model failed: CUDA failed: out of memory"):
        model.run([rows(2)])
    runtime._MOST_BYTES = 1 << 20
    assert model.run([rows(2)])[0].tolist() == [[1.0], [5.0]]


def test_an_output_whose_shape_depends_on_values_is_refused(trt: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "model.plan"
    outputs = {"y": ("FLOAT", (-1, -1), ONE)}
    file.write_bytes(trt.planned({"x": ("FLOAT", (-1, 2))}, outputs, batches((1, 8))))
    with pytest.raises(BackendError, match="output 'y' has a shape that depends on its values, which is not served"):
        load(file).run([rows(2)])


def test_profiles_are_of_plans_alone(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    (folder / "1" / "model.onnx").write_bytes(b"")
    (folder / "config.pbtxt").write_text('instance_group { profile: ["0"] }')
    settings = LoadSettings()
    with pytest.raises(ModelError, match="profile is of TensorRT's plans; backend 'onnxruntime' has none"):
        load_model.open_versions(load_model.plan(repository.model_folder(folder), settings), (1,), settings, {})


def test_all_of_cuda_that_is_called_is_in_the_real_package() -> None:
    real = pytest.importorskip("cuda.bindings.runtime", reason="cuda-bindings is not installed")
    source = Path(registry.__file__).with_name("cuda_memory.py").read_text(encoding="utf-8")
    called = set(re.findall(r"cudart\.(\w+)", source))
    assert "cudaMalloc" in called
    assert [name for name in sorted(called) if not hasattr(real, name)] == []
