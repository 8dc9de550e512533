"""GPU metrics of this process's GPUs and MIG slices, as families of the metrics page (Triton: GPU metrics).

Triton shows whole GPUs only. A slice has its own memory here, and names its parent GPU; power is its GPU's. Values that
NVML does not report are left out, and everything on a machine without a GPU.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from serving_runtime.devices import nvml
from serving_runtime.devices.gpu import Gpu
from serving_runtime.devices.nvml import Reading
from serving_runtime.telemetry.metrics.families import Family, Value


class _Metric(NamedTuple):
    name: str
    kind: str
    text: str
    value: Callable[[Reading], float | None]


_METRICS = (
    _Metric(
        "nv_gpu_utilization",
        "gauge",
        "Share of the time in which something ran on the GPU, 0 to 1",
        lambda one: one.utilization,
    ),
    _Metric("nv_gpu_memory_total_bytes", "gauge", "Memory of the GPU or slice", lambda one: one.memory_total_bytes),
    _Metric(
        "nv_gpu_memory_used_bytes",
        "gauge",
        "Memory of the GPU or slice that is in use",
        lambda one: one.memory_used_bytes,
    ),
    _Metric("nv_gpu_power_usage", "gauge", "Power that the GPU takes, watts", lambda one: one.power_watts),
    _Metric("nv_gpu_power_limit", "gauge", "Power that the GPU may take, watts", lambda one: one.power_limit_watts),
    _Metric(
        "nv_energy_consumption",
        "counter",
        "Energy that the GPU took since its driver was loaded, joules",
        lambda one: one.energy_joules,
    ),
)


class GpuMeter:
    """Samples this process's GPUs; `look` blocks on the driver, so call it on a thread."""

    def __init__(self) -> None:
        self._readings: tuple[Reading, ...] = ()

    def look(self) -> None:
        self._readings = nvml.readings(nvml.mine().gpus)

    def families(self) -> Iterator[Family]:
        return gpu_families(self._readings)


def gpu_families(readings: Sequence[Reading]) -> Iterator[Family]:
    """Yield the families that have samples."""
    for metric in _METRICS:
        samples: list[tuple[Mapping[str, str], Value]] = [
            (_labels(reading.gpu), value) for reading in readings if (value := metric.value(reading)) is not None
        ]
        if samples:
            yield Family(metric.name, metric.kind, metric.text, samples)


def _labels(gpu: Gpu) -> dict[str, str]:
    if not gpu.parent:
        return {"gpu_uuid": gpu.uuid}
    return {"gpu_uuid": gpu.uuid, "mig_profile": gpu.profile, "parent_uuid": gpu.parent}
