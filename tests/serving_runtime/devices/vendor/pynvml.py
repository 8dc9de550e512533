"""A stand-in for nvidia-ml-py: the functions of NVML's API reference that the runtime calls, over a made-up machine.

FAIRLEAD_TEST_GPUS names the machine: one GPU per word, `whole` or what it is cut into, as `1g.10gb+2g.20gb`.
"""

import os
from types import SimpleNamespace

NVML_DEVICE_MIG_ENABLE = 1
NVML_DEVICE_MIG_DISABLE = 0
_GIB = 1 << 30


class NVMLError(Exception):
    pass


class NVMLError_NotSupported(NVMLError):
    pass


class NVMLError_NotFound(NVMLError):
    pass


def _machine():
    handles = []
    for number, cut in enumerate(os.environ.get("FAIRLEAD_TEST_GPUS", "").split()):
        whole = SimpleNamespace(uuid=f"GPU-{number}", gib=80, slices=[], name="NVIDIA H100 80GB HBM3", shape=None)
        if cut != "whole":
            for place, profile in enumerate(cut.split("+")):
                slices, gib = int(profile[0]), int(profile.partition(".")[2].removesuffix("gb"))
                shape = SimpleNamespace(
                    memorySizeMB=gib * 1024, gpuInstanceSliceCount=slices, computeInstanceSliceCount=slices
                )
                mig = SimpleNamespace(
                    uuid=f"MIG-{number}-{place}", gib=gib, slices=None, name=f"{whole.name} MIG {profile}", shape=shape
                )
                whole.slices.append(mig)
        handles.append(whole)
    return handles


def nvmlInit() -> None:
    if "FAIRLEAD_TEST_GPUS" not in os.environ:
        raise NVMLError("NVML Shared Library Not Found")


def nvmlDeviceGetCount():
    return len(_machine())


def nvmlDeviceGetHandleByIndex(index):
    return _machine()[index]


def nvmlDeviceGetHandleByUUID(uuid):
    for whole in _machine():
        for handle in (whole, *whole.slices):
            if handle.uuid == uuid:
                return handle
    raise NVMLError_NotFound("Not Found")


def nvmlDeviceGetUUID(handle):
    return handle.uuid


def nvmlDeviceGetName(handle):
    return handle.name


def nvmlDeviceGetCudaComputeCapability(handle):
    return (9, 0)


def nvmlDeviceGetMigMode(handle):
    mode = NVML_DEVICE_MIG_ENABLE if handle.slices else NVML_DEVICE_MIG_DISABLE
    return [mode, mode]


def nvmlDeviceGetMaxMigDeviceCount(handle):
    return 7


def nvmlDeviceGetMigDeviceHandleByIndex(handle, index):
    if index >= len(handle.slices):
        raise NVMLError_NotFound("Not Found")
    return handle.slices[index]


def nvmlDeviceGetAttributes(handle):
    return handle.shape


def nvmlDeviceGetMemoryInfo(handle):
    return SimpleNamespace(total=handle.gib * _GIB, used=_GIB, free=(handle.gib - 1) * _GIB)


def nvmlDeviceGetUtilizationRates(handle):
    if handle.slices is None or handle.slices:
        raise NVMLError_NotSupported("Not Supported")
    return SimpleNamespace(gpu=37, memory=12)


def nvmlDeviceGetPowerUsage(handle):
    return 250_500


def nvmlDeviceGetPowerManagementLimit(handle):
    return 700_000


def nvmlDeviceGetTotalEnergyConsumption(handle):
    return 9_000_000
