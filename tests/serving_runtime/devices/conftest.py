"""Machines with GPUs that NVML tells of: a stand-in for its Python package, which nobody else is to see."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from serving_runtime.devices import nvml

STAND_IN = Path(__file__).parent / "nvidia" / "pynvml.py"


def stand_in() -> ModuleType:
    spec = importlib.util.spec_from_file_location("pynvml", STAND_IN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return what makes this process's machine one of the stand-in's."""
    monkeypatch.setitem(sys.modules, "pynvml", stand_in())
    for cached in (nvml.machine, nvml._library):
        cached.cache_clear()
    for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "FAIRLEAD_TEST_GPUS"):
        monkeypatch.delenv(variable, raising=False)
    yield lambda machine: monkeypatch.setenv("FAIRLEAD_TEST_GPUS", machine)
    for cached in (nvml.machine, nvml._library):
        cached.cache_clear()
