"""Which of ONNX Runtime's execution providers a session gets, and whether it got them.

ONNX Runtime goes on without a provider that it cannot load; here the load is refused then, since a model that was to
run on a GPU would answer from the CPU. The CUDA and TensorRT providers are built to the documentation and not
verified on hardware.
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
    """Return whether the installed wheel is one that has the CUDA provider."""
    return CUDA in ort.get_available_providers()


def providers(options: BackendOptions, operators: Mapping[str, str] = NOTHING) -> list[Provider]:
    """Return the providers of a model's session, the first ones first (Triton: ONNX Runtime backend).

    On a GPU those that the config lists, CUDA, those for the CPU, and the CPU at last; on the CPU the latter two. What
    is listed for another device is checked all the same. Raises ModelError.

    Args:
        operators: what the server's operator says of them (`onnxruntime_accelerators.OPERATORS`).
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
    """Raise ModelError where ONNX Runtime goes on without a provider that the session was to have."""
    used = session.get_providers()
    for name, _ in wanted:
        if name not in used:
            raise ModelError(
                f"ONNX Runtime cannot use its {name} here and would run the model without it; "
                "look whether the driver and the libraries that it needs are those that its version was made for"
            )


def _gpu_providers(options: BackendOptions, operators: Mapping[str, str]) -> tuple[list[Provider], dict[str, str]]:
    """Return what goes before the CUDA provider, which is always there, and the CUDA provider's options."""
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
