"""PyTorch backend: TorchScript (.pt) and torch.export (.pt2), on the CPU or a CUDA device, in inference mode.

A torch.export program declares its signature; for TorchScript config.pbtxt must. Both are code: they are opened only
where the server allows that.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from serving_runtime.backends import registry
from serving_runtime.backends.arrays import writable
from serving_runtime.backends.parameters import backend_settings, merged
from serving_runtime.backends.pytorch.cuda import CudaRunner
from serving_runtime.backends.pytorch.program import TorchProgram, TorchTensor, load_program, reason
from serving_runtime.common.datatypes import BF16, DATATYPES, Array
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import VARIABLE, WrittenTensor

# Triton: PyTorch backend, parameters; CUDA_GRAPH_BATCH_SIZES is this backend's own.
PARAMETERS = ("CUDA_GRAPH_BATCH_SIZES", "DISABLE_OPTIMIZED_EXECUTION", "INFERENCE_MODE")

_DATATYPES = {
    torch.bool: "BOOL",
    torch.uint8: "UINT8",
    torch.int8: "INT8",
    torch.int16: "INT16",
    torch.int32: "INT32",
    torch.int64: "INT64",
    torch.float16: "FP16",
    torch.bfloat16: "BF16",
    torch.float32: "FP32",
    torch.float64: "FP64",
}


class PyTorchBackend:
    """Opens what `torch.jit.save` and `torch.export.save` write."""

    platform = "pytorch_libtorch"
    default_filename = "model.pt"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=pytorch,key=value settings; raises ModelError."""
        known = (*PARAMETERS, "INTRA_OP_THREAD_COUNT")
        self.default_max_batch_size, self._settings = backend_settings("pytorch", settings, known, 4)
        threads = merged(
            "pytorch", {}, {"INTRA_OP_THREAD_COUNT": self._settings.pop("INTRA_OP_THREAD_COUNT", "1")}, known
        )
        self.runs_on_gpus = torch.cuda.is_available()
        torch.set_num_threads(threads.number("INTRA_OP_THREAD_COUNT", 1, 1, 1024))  # one number per process

    def load(self, file: Path, options: BackendOptions) -> "PyTorchModel":
        registry.check_code("pytorch", allowed=options.allow_python_models)
        parameters = merged("pytorch", self._settings, options.parameters, PARAMETERS)
        graph_sizes = _sizes(options.parameters.get("CUDA_GRAPH_BATCH_SIZES", ""))
        if graph_sizes and options.gpu is None:
            raise ModelError("parameter 'CUDA_GRAPH_BATCH_SIZES' needs an instance_group of KIND_GPU")
        device = _device(options.gpu)
        program = load_program(file, device)
        signature = _signature(program, options)
        model = PyTorchModel(
            program,
            signature,
            inference_mode=parameters.boolean("INFERENCE_MODE", default=True),
            optimized=not parameters.boolean("DISABLE_OPTIMIZED_EXECUTION", default=False),
        )
        if graph_sizes and any(VARIABLE in spec.shape[1:] for spec in signature.inputs):
            raise ModelError("parameter 'CUDA_GRAPH_BATCH_SIZES' needs inputs with no variable dimension but the first")
        if options.gpu is not None:
            model.use(
                CudaRunner(device, model.call, [(spec.shape, _dtype(spec)) for spec in signature.inputs], graph_sizes)
            )
        return model


class PyTorchModel:
    """One program; any number of threads may run it on the CPU, one at a time on a CUDA device."""

    def __init__(self, program: TorchProgram, signature: Signature, *, inference_mode: bool, optimized: bool) -> None:
        self.signature = signature
        self.opsets: dict[str, int] = {}
        self._program: TorchProgram | None = program
        self._mode = torch.inference_mode if inference_mode else torch.no_grad
        self._optimized = optimized
        self._cuda: CudaRunner | None = None

    def use(self, runner: CudaRunner) -> None:
        """Run on a CUDA device from now on."""
        self._cuda = runner

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        assert self._program is not None, "a closed model is not run"  # noqa: S101
        try:
            given = [
                _tensor(array, spec, copy=self._program.writes_inputs and self._cuda is None)
                for array, spec in zip(inputs, self.signature.inputs, strict=True)
            ]
            found = self.call(given) if self._cuda is None else self._cuda.run(given)
            if len(found) != len(self.signature.outputs):
                raise BackendError(f"the model failed: it gave {len(found)} outputs, not {len(self.signature.outputs)}")
            return [_array(tensor, spec) for tensor, spec in zip(found, self.signature.outputs, strict=True)]
        except BackendError:
            raise
        except Exception as error:  # torch's exceptions share no base class
            raise BackendError(f"the model failed: {reason(error)}") from error

    def call(self, tensors: Sequence[Any]) -> Sequence[Any]:
        """Return the program's outputs for tensors on its device."""
        assert self._program is not None  # noqa: S101
        with self._mode(), torch.jit.optimized_execution(self._optimized):
            return self._program.call(tensors)

    def close(self) -> None:
        if self._cuda is not None:
            self._cuda.close()
        self._cuda = self._program = None


def _device(gpu: int | None) -> str:
    """Return torch's name of the device; raises ModelError where torch finds no such GPU."""
    if gpu is None:
        return "cpu"
    if not torch.cuda.is_available() or gpu >= torch.cuda.device_count():
        there = torch.cuda.device_count() if torch.cuda.is_available() else 0
        raise ModelError(f"instance_group asks for GPU {gpu}; torch finds {there} here")
    return f"cuda:{gpu}"


def _sizes(text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise ModelError(f"parameter 'CUDA_GRAPH_BATCH_SIZES' must be numbers as in 1,8,32, found '{text}'")
    return tuple(sorted({int(part) for part in parts}))


def _signature(program: TorchProgram, options: BackendOptions) -> Signature:
    """Return the signature of the file and config.pbtxt; raises ModelError where it is incomplete."""
    known = program.outputs or ()
    return Signature(
        _specs(program.inputs, options.inputs, "input", batched=options.max_batch_size > 0),
        _specs(known, options.outputs, "output", batched=options.max_batch_size > 0),
    )


def _specs(
    found: Sequence[TorchTensor], written: Sequence[WrittenTensor], kind: str, *, batched: bool
) -> tuple[TensorSpec, ...]:
    if not written:
        return tuple(_spec(tensor, tensor.name, kind) for tensor in _said(found, kind))
    ordered = in_order(written, [tensor.name for tensor in found], kind)
    if all(tensor.dtype is not None for tensor in found) and found:
        return tuple(_spec(tensor, config.name, kind) for tensor, config in zip(found, ordered, strict=True))
    return tuple(_from_config(config, kind, batched=batched) for config in ordered)


def _said(found: Sequence[TorchTensor], kind: str) -> Sequence[TorchTensor]:
    if not found or any(tensor.dtype is None for tensor in found):
        raise ModelError(
            f"TorchScript says nothing of its tensors; list every {kind} with data_type and dims in config.pbtxt"
        )
    return found


def _spec(tensor: TorchTensor, name: str, kind: str) -> TensorSpec:
    datatype = _DATATYPES.get(tensor.dtype)
    if datatype is None or tensor.shape is None:
        raise ModelError(f"{kind} '{name}' is of {tensor.dtype}, which this backend does not serve")
    return TensorSpec(name, DATATYPES[datatype], tensor.shape)


def _from_config(config: WrittenTensor, kind: str, *, batched: bool) -> TensorSpec:
    if config.datatype is None or not (config.shape or batched):
        raise ModelError(f"TorchScript says nothing of its tensors; {kind} '{config.name}' needs data_type and dims")
    if config.datatype.name not in _DATATYPES.values():
        raise ModelError(f"{kind} '{config.name}' is {config.datatype.config_name}, which this backend does not serve")
    return TensorSpec(config.name, config.datatype, (VARIABLE, *config.shape) if batched else config.shape)


def _dtype(spec: TensorSpec) -> Any:
    return next(dtype for dtype, name in _DATATYPES.items() if name == spec.datatype.name)


def _tensor(array: Array, spec: TensorSpec, *, copy: bool) -> Any:
    """Return an array as a tensor on the same memory; on its own memory for a model that may write its inputs."""
    array = array.copy() if copy else writable(array)
    if spec.datatype is BF16:  # numpy has no BF16: its bits are passed
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _array(tensor: Any, spec: TensorSpec) -> Array:
    if not isinstance(tensor, torch.Tensor) or _DATATYPES.get(tensor.dtype) != spec.datatype.name:
        found = tensor.dtype if isinstance(tensor, torch.Tensor) else type(tensor).__name__
        raise BackendError(
            f"the model failed: output '{spec.name}' is {found}, not {spec.datatype.name} as config.pbtxt has it"
        )
    tensor = tensor.detach().contiguous()
    if spec.datatype is BF16:
        return np.asarray(tensor.view(torch.int16).numpy().view(BF16.dtype))
    return np.asarray(tensor.numpy())


_NUMBERED = re.compile(r".+__([0-9]+)")


def in_order(written: Sequence[WrittenTensor], known: Sequence[str], kind: str) -> list[WrittenTensor]:
    """Return the config's tensors in the program's order; raises ModelError where they do not match.

    By the program's own names, else by numbers (`INPUT__0`), else in the listed order.

    Args:
        known: the program's names; empty where its file has none.
    """
    if known and len(written) != len(known):
        raise ModelError(f"config.pbtxt lists {len(written)} {kind}s, the model has {len(known)}: {', '.join(known)}")
    names = [tensor.name for tensor in written]
    if known and set(names) == set(known):
        return sorted(written, key=lambda tensor: known.index(tensor.name))
    numbers = [int(found[1]) if (found := _NUMBERED.fullmatch(name)) else -1 for name in names]
    if sorted(numbers) == list(range(len(names))):
        return [written[numbers.index(position)] for position in range(len(names))]
    return list(written)
