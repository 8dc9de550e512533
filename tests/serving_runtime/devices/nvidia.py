"""Machines with NVIDIA GPUs: stand-ins for the vendor's Python packages, which are at the seam and nowhere else."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from serving_runtime.devices import nvml

STAND_INS = Path(__file__).parent / "vendor"
_PACKAGES = ("pynvml", "tensorrt", "cuda")
_OURS = tuple(f"serving_runtime.backends.{name}" for name in ("cuda_memory", "tensorrt.backend", "tensorrt.engine"))


@contextmanager
def machine(gpus: str | None) -> Iterator[pytest.MonkeyPatch]:
    """Have this process's machine be one of the stand-ins', without a driver for None, until the block ends."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES or name in _OURS]:
            patch.delitem(sys.modules, name)
        patch.syspath_prepend(STAND_INS)
        for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "FAIRLEAD_TEST_GPUS"):
            patch.delenv(variable, raising=False)
        if gpus is not None:
            patch.setenv("FAIRLEAD_TEST_GPUS", gpus)
        _forget()
        try:
            yield patch
        finally:
            for name in [name for name in sys.modules if name.partition(".")[0] in _PACKAGES or name in _OURS]:
                del sys.modules[name]
            _forget()


def _forget() -> None:
    importlib.invalidate_caches()
    for cached in (nvml.machine, nvml._library):
        cached.cache_clear()
