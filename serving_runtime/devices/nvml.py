"""NVML: inventory and utilization of this machine's GPUs; the only importer of `pynvml` (nvidia-ml-py).

Built to NVML's API reference; not verified on hardware.
"""

import functools
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from serving_runtime.devices.gpu import Gpu, visible

_PROFILE = re.compile(r"\bMIG (\S+)")  # NVML names a slice "NVIDIA H100 80GB HBM3 MIG 1g.10gb"


@dataclass(frozen=True, slots=True)
class Found:
    """The GPUs and slices of this machine; `why_none` says why the list is empty."""

    gpus: tuple[Gpu, ...] = ()
    why_none: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """Use of one GPU or slice; None for what NVML does not report.

    Attributes:
        utilization: share of the time in which a kernel ran, 0 to 1; not reported for slices.
        power_watts, power_limit_watts, energy_joules: of whole GPUs.
    """

    gpu: Gpu
    utilization: float | None = None
    memory_used_bytes: int | None = None
    memory_total_bytes: int | None = None
    power_watts: float | None = None
    power_limit_watts: float | None = None
    energy_joules: float | None = None


@functools.cache
def machine() -> Found:
    """Return this machine's GPUs and slices as of the first call; a repartitioned GPU needs a new process."""
    library = _library()
    if isinstance(library, str):
        return Found(why_none=library)
    gpus = tuple(_gpus(library))
    return Found(gpus, "" if gpus else "NVML lists none")


def mine() -> Found:
    """Return the GPUs and slices that this process's environment leaves to it."""
    found = machine()
    gpus = visible(found.gpus, os.environ)
    if found.gpus and not gpus:
        return Found(why_none="CUDA_VISIBLE_DEVICES and NVIDIA_VISIBLE_DEVICES leave none of this machine's")
    return Found(gpus, found.why_none)


def readings(gpus: tuple[Gpu, ...]) -> tuple[Reading, ...]:
    """Return the current use of GPUs and slices; for slices, the power of their GPU, once."""
    library = _library()
    if isinstance(library, str):
        return ()
    parents = {gpu.parent: Gpu(gpu.parent, gpu.name, 0) for gpu in gpus if gpu.parent}
    return tuple(_reading(library, gpu) for gpu in (*parents.values(), *gpus))


@functools.cache
def _library() -> Any:
    """Return initialised pynvml, or the reason why it cannot be used."""
    try:
        import pynvml  # noqa: PLC0415 - an extra, wanted where GPUs are
    except ModuleNotFoundError:
        return "NVML needs the package nvidia-ml-py, which is not installed; run: pip install 'fairlead[gpu]'"
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return f"NVML finds no NVIDIA driver here: {error}"
    return pynvml


def _gpus(library: Any) -> Iterator[Gpu]:
    for index in range(library.nvmlDeviceGetCount()):
        handle = library.nvmlDeviceGetHandleByIndex(index)
        whole = Gpu(
            library.nvmlDeviceGetUUID(handle),
            library.nvmlDeviceGetName(handle),
            getattr(_answer(library, library.nvmlDeviceGetMemoryInfo, handle), "total", 0),
            ".".join(str(part) for part in library.nvmlDeviceGetCudaComputeCapability(handle)),
        )
        mode = _answer(library, library.nvmlDeviceGetMigMode, handle)
        if mode and mode[0] == library.NVML_DEVICE_MIG_ENABLE:
            yield from _slices(library, handle, whole)
        else:
            yield whole


def _slices(library: Any, handle: Any, whole: Gpu) -> Iterator[Gpu]:
    for index in range(library.nvmlDeviceGetMaxMigDeviceCount(handle)):
        mig = _answer(library, library.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
        if mig is None:  # unused MIG indices
            continue
        shape = library.nvmlDeviceGetAttributes(mig)
        yield Gpu(
            library.nvmlDeviceGetUUID(mig),
            whole.name,
            shape.memorySizeMB << 20,
            whole.capability,
            _profile(library.nvmlDeviceGetName(mig), shape),
            whole.uuid,
        )


def _profile(name: str, shape: Any) -> str:
    """Return a slice's profile by its name, else by its share of the GPU."""
    if found := _PROFILE.search(name):
        return found[1]
    slices, compute = shape.gpuInstanceSliceCount, shape.computeInstanceSliceCount
    part = f"{compute}c." if compute != slices else ""
    return f"{part}{slices}g.{round(shape.memorySizeMB / 1024)}gb"


def _reading(library: Any, gpu: Gpu) -> Reading:
    handle = _answer(library, library.nvmlDeviceGetHandleByUUID, gpu.uuid)
    if handle is None:
        return Reading(gpu)
    cut = not gpu.memory_bytes  # a whole GPU in MIG mode: its memory is reported slice by slice
    memory = None if cut else _answer(library, library.nvmlDeviceGetMemoryInfo, handle)
    used, total = (memory.used, memory.total) if memory is not None else (None, None)
    if gpu.parent:
        return Reading(gpu, memory_used_bytes=used, memory_total_bytes=total)
    rates = None if cut else _answer(library, library.nvmlDeviceGetUtilizationRates, handle)
    return Reading(
        gpu,
        utilization=None if rates is None else rates.gpu / 100,
        memory_used_bytes=used,
        memory_total_bytes=total,
        power_watts=_thousandth(_answer(library, library.nvmlDeviceGetPowerUsage, handle)),
        power_limit_watts=_thousandth(_answer(library, library.nvmlDeviceGetPowerManagementLimit, handle)),
        energy_joules=_thousandth(_answer(library, library.nvmlDeviceGetTotalEnergyConsumption, handle)),
    )


def _answer(library: Any, ask: Callable[..., Any], *about: Any) -> Any:
    """Return a value, None where NVML has none: not every GPU, slice or container reports everything."""
    try:
        return ask(*about)
    except library.NVMLError:
        return None


def _thousandth(value: float | None) -> float | None:
    return None if value is None else value / 1000
