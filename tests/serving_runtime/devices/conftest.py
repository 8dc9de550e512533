"""Machines with GPUs that NVML tells of."""

from collections.abc import Callable, Iterator

import pytest

from tests.serving_runtime.devices import nvidia


@pytest.fixture
def gpus() -> Iterator[Callable[[str], None]]:
    """Return what makes this process's machine one of the stand-in's."""
    with nvidia.machine(None) as patch:
        yield lambda machine: patch.setenv("FAIRLEAD_TEST_GPUS", machine)
