"""Backends are found by name: built in, or an operator's own from --backend-directory."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.backends import registry
from serving_runtime.backends.onnx.backend import OnnxRuntimeBackend
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions

OWN = Path(__file__).parents[1] / "own_backends"


@pytest.fixture(autouse=True)
def settings_end_with_the_test() -> Iterator[None]:
    """What is imported once keeps its settings, which other tests must not meet."""
    registry._imported.cache_clear()
    yield
    registry._imported.cache_clear()


def test_a_built_in_backend_is_found_without_a_directory() -> None:
    assert isinstance(registry.find("onnxruntime", None, {}), OnnxRuntimeBackend)


@pytest.mark.feature("C3")
def test_an_operators_own_backend_loads_models() -> None:
    model = registry.find("scale", OWN, {}).load(OWN, BackendOptions(parameters={"factor": "3"}))
    assert model.run([np.ones((1, 2), np.float32)])[0].tolist() == [[3, 3]]


def test_an_operators_own_backend_is_imported_once_and_takes_settings() -> None:
    assert registry.find("scale", OWN, {}) is registry.find("scale", OWN, {"factor": "5"})
    model = registry.find("scale", OWN, {"factor": "5"}).load(OWN, BackendOptions(parameters={}))
    assert model.run([np.ones((1, 2), np.float32)])[0].tolist() == [[5, 5]]


@pytest.mark.parametrize(
    ("name", "code", "settings", "sentence"),
    [
        pytest.param("pmml", None, {}, "backend 'pmml' is not supported; supported is onnxruntime, ", id="nowhere"),
        pytest.param("../scale", "BACKEND = 1", {}, "backend '../scale' is not supported", id="a path for a name"),
        pytest.param("mine", "BACKEND = object()", {"a": "b"}, "takes no settings", id="settings it does not take"),
        pytest.param("mine", "1 / 0", {}, "cannot be imported: division by zero", id="a module that fails"),
        pytest.param("mine", "", {}, "has no BACKEND", id="a module without a backend"),
    ],
)
def test_what_cannot_be_found_is_told(
    tmp_path: Path, name: str, code: str | None, settings: dict[str, str], sentence: str
) -> None:
    if code is not None:
        file = tmp_path / "directory" / name / "backend.py"
        file.parent.mkdir(parents=True)
        file.write_text(code)
    (tmp_path / "directory").mkdir(exist_ok=True)
    with pytest.raises(ModelError, match="backend") as caught:
        registry.find(name, tmp_path / "directory", settings)
    assert sentence in str(caught.value)
