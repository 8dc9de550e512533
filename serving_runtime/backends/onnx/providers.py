"""Execution provider selection for ONNX Runtime sessions, and a check that they are active.

ONNX Runtime silently continues without a provider that it cannot load; the load is then refused here, since a model
meant for a GPU would run on the CPU. The CUDA and TensorRT providers are built to the documentation and not verified
on hardware.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import onnxruntime as ort

from serving_runtime.backends.onnx import accelerators
from serving_runtime.common.errors import ModelError, NotInstalledError
from serving_runtime.config.model import BackendOptions

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"

Provider = tuple[str, dict[str, str]]
NOTHING: Mapping[str, str] = MappingProxyType({})

_BROUGHT_BY = {CUDA: "serving-cuda", TENSORRT: "serving-cuda", OPENVINO: "serving-openvino"}


def runs_on_gpus() -> bool:
    """Return whether the installed wheel has the CUDA provider."""
    return CUDA in ort.get_available_providers()


def providers(options: BackendOptions, operators: Mapping[str, str] = NOTHING) -> list[Provider]:
    """Return the providers of a model's session, highest priority first (Triton: ONNX Runtime backend).

    On a GPU those of the config, CUDA, those for the CPU, and the CPU provider last; on the CPU the latter two. Entries
    for another device are checked all the same. Raises ModelError.

    Args:
        operators: the operator's settings for them (`accelerators.OPERATORS`).
    """
    on_gpu, cuda = _gpu_providers(options, operators)
    found = [*on_gpu, (CUDA, cuda)] if options.gpu is not None else []
    found += _cpu_providers(options, operators)
    for name, _ in found:
        _check_brought(name)
    if options.gpu is not None:
        _preload()
        found = [
            (name, {"device_id": str(options.gpu), **own} if name in (CUDA, TENSORRT) else own) for name, own in found
        ]
    return [*found, (CPU, {})]


def check_used(session: Any, wanted: list[Provider]) -> None:
    """Raise ModelError where ONNX Runtime continues without a required provider."""
    used = session.get_providers()
    for name, _ in wanted:
        if name not in used:
            raise ModelError(
                f"ONNX Runtime cannot use its {name} here and would run the model without it; "
                "look whether the driver and the libraries that it needs are those that its version was made for"
            )


def _gpu_providers(options: BackendOptions, operators: Mapping[str, str]) -> tuple[list[Provider], dict[str, str]]:
    """Return the providers before the CUDA provider, which is always present, and the CUDA provider's options."""
    before: list[Provider] = []
    own: Mapping[str, str] = {}
    for each in options.gpu_accelerators:
        if each.name == "tensorrt":
            before.append((TENSORRT, accelerators.tensorrt(each.parameters, operators)))
        elif each.name == "cuda":
            own = each.parameters
        else:
            raise ModelError(
                f"unknown Execution Accelerator '{each.name}' is requested; on GPUs there are tensorrt, cuda"
            )
    return before, accelerators.cuda(own, options.parameters)


def _cpu_providers(options: BackendOptions, operators: Mapping[str, str]) -> list[Provider]:
    found: list[Provider] = []
    for each in options.cpu_accelerators:
        if each.name != "openvino":
            raise ModelError(f"unknown Execution Accelerator '{each.name}' is requested; on the CPU there is openvino")
        found.append((OPENVINO, accelerators.openvino(each.parameters, options.instance_count, operators)))
    return found


def _check_brought(name: str) -> None:
    if name not in ort.get_available_providers():
        raise NotInstalledError(
            f"the installed ONNX Runtime has no {name}; in an environment of its own run: "
            f"pip install 'fairlead[{_BROUGHT_BY[name]}]'"
        )


@functools.cache
def _preload() -> None:
    """Load the CUDA libraries that are installed as Python packages, once (ONNX Runtime: preload_dlls)."""
    ort.preload_dlls()
