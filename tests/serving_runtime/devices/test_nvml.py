"""What NVML tells of whole GPUs and slices, and what is said where it tells of none."""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from serving_runtime.devices import nvml
from serving_runtime.devices.gpu import Gpu

GIB = 1 << 30
Machine = Callable[[str], None]


def test_whole_gpus_and_slices_are_told_apart(gpus: Machine) -> None:
    gpus("whole 1g.10gb+2g.20gb")
    name = "NVIDIA H100 80GB HBM3"
    assert nvml.machine().gpus == (
        Gpu("GPU-0", name, 80 * GIB, "9.0"),
        Gpu("MIG-1-0", name, 10 * GIB, "9.0", "1g.10gb", "GPU-1"),
        Gpu("MIG-1-1", name, 20 * GIB, "9.0", "2g.20gb", "GPU-1"),
    )


def test_a_process_has_what_its_environment_leaves_to_it(gpus: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus("whole 1g.10gb+1g.10gb")
    monkeypatch.setenv("NVIDIA_VISIBLE_DEVICES", "MIG-1-1")
    assert [gpu.uuid for gpu in nvml.mine().gpus] == ["MIG-1-1"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert nvml.mine() == nvml.Found(
        why_none="CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES leave none of this machine's"
    )


@pytest.mark.feature("M5")
def test_a_whole_gpus_use(gpus: Machine) -> None:
    gpus("whole")
    (reading,) = nvml.readings(nvml.mine().gpus)
    assert (reading.utilization, reading.memory_used_bytes, reading.memory_total_bytes) == (0.37, GIB, 80 * GIB)
    assert (reading.power_watts, reading.power_limit_watts, reading.energy_joules) == (250.5, 700.0, 9000.0)


@pytest.mark.feature("M5")
def test_slices_have_memory_of_their_own_and_their_gpus_power(gpus: Machine) -> None:
    gpus("1g.10gb+2g.20gb")
    whole, *slices = nvml.readings(nvml.mine().gpus)
    assert (whole.gpu.uuid, whole.power_watts) == ("GPU-0", 250.5)
    assert (whole.utilization, whole.memory_total_bytes) == (None, None)
    assert [(one.gpu.profile, one.memory_total_bytes, one.power_watts) for one in slices] == [
        ("1g.10gb", 10 * GIB, None),
        ("2g.20gb", 20 * GIB, None),
    ]


def test_without_a_driver_it_says_so(gpus: Machine) -> None:
    assert nvml.mine() == nvml.Found(why_none="NVML finds no NVIDIA driver here: NVML Shared Library Not Found")
    assert nvml.readings(()) == ()


def test_without_the_package_it_names_what_to_install(gpus: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml.mine().why_none.endswith("is not installed; run: pip install 'fairlead[gpu]'")


def test_all_that_is_asked_of_nvml_is_in_the_real_package() -> None:
    real = pytest.importorskip("pynvml", reason="nvidia-ml-py is not installed: pip install 'fairlead[gpu]'")
    asked = set(re.findall(r"library\.(\w+)", Path(nvml.__file__).read_text(encoding="utf-8")))
    assert asked > {"nvmlDeviceGetUUID", "NVMLError"}
    assert [name for name in sorted(asked) if not hasattr(real, name)] == []
