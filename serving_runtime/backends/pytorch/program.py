"""Torch programs: a TorchScript module or a torch.export program as one callable on tensors, with its signature."""

import warnings
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from serving_runtime.backends.sklearn.zip_limits import check_sizes
from serving_runtime.common.errors import ModelError


@dataclass(frozen=True, slots=True)
class TorchTensor:
    """A tensor's declaration in a file; a TorchScript file has at most its name."""

    name: str
    dtype: Any = None
    shape: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class TorchProgram:
    """A model on its device.

    Attributes:
        call: takes the tensors of `inputs`, returns those of `outputs`, which are None where the file does not say.
        writes_inputs: whether it may change its arguments.
    """

    call: Callable[[Sequence[Any]], Sequence[Any]]
    inputs: tuple[TorchTensor, ...]
    outputs: tuple[TorchTensor, ...] | None
    writes_inputs: bool


def load_program(file: Path, device: str) -> TorchProgram:
    """Return the model in a file by its ending, .pt2 for torch.export; raises ModelError. Both are code, which runs."""
    if not file.is_file():
        raise ModelError(f"there is no {file.name}")
    try:
        with zipfile.ZipFile(file) as archive:
            check_sizes(archive, file.stat().st_size, file.name)
        return _exported(file, device) if file.suffix == ".pt2" else _scripted(file, device)
    except ModelError:
        raise
    except Exception as error:  # torch's exceptions share no base class
        raise ModelError(f"{file.name} cannot be loaded by torch: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Return torch's error message, without the program's traceback, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    reasons = [line for line in lines if line.startswith("RuntimeError: ")] or lines[:1]
    return " ".join(" ".join(reasons).split())[:500] or type(error).__name__


def _scripted(file: Path, device: str) -> TorchProgram:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch recommends torch.export
        module = torch.jit.load(str(file), map_location=device).eval()
    names = [argument.name for argument in module.forward.schema.arguments[1:] if not argument.has_default_value()]

    def call(tensors: Sequence[Any]) -> Sequence[Any]:
        return _named(module(*tensors))

    return TorchProgram(call, tuple(TorchTensor(name) for name in names), None, writes_inputs=True)


def _named(answer: Any) -> Sequence[Any]:
    """Return a result's tensors in order; those of a dict in the order of its keys' names."""
    if isinstance(answer, dict):
        return [answer[key] for key in sorted(answer)]
    return [answer] if isinstance(answer, torch.Tensor) else list(answer)


def _exported(file: Path, device: str) -> TorchProgram:
    program = torch.export.load(str(file))
    if device != "cpu":
        from torch.export.passes import move_to_device_pass  # noqa: PLC0415 - only where there is another device

        program = move_to_device_pass(program, device)
    module = program.module()
    signature, spec = program.graph_signature, program.call_spec.in_spec
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    keys = _keys(program.call_spec.out_spec)
    inputs = tuple(_tensor(name, name, values) for name in signature.user_inputs)
    outputs = tuple(
        _tensor(node, key, values)
        for node, key in zip(signature.user_outputs, keys or signature.user_outputs, strict=True)
    )

    def call(tensors: Sequence[Any]) -> Sequence[Any]:
        arguments, keywords = pytree.tree_unflatten(list(tensors), spec)
        answers: Sequence[Any] = pytree.tree_leaves(module(*arguments, **keywords))
        return answers

    return TorchProgram(call, inputs, outputs, writes_inputs=_may_write(program))


def _may_write(program: Any) -> bool:
    """Return whether any operation writes in place; whether it writes an input is not analysed."""
    nodes = [node for graph in program.graph_module.modules() if hasattr(graph, "graph") for node in graph.graph.nodes]
    schemas = [getattr(node.target, "_schema", None) for node in nodes if node.op == "call_function"]
    return bool(program.graph_signature.user_inputs_to_mutate) or any(
        schema is not None and schema.is_mutable for schema in schemas
    )


def _keys(spec: Any) -> list[str]:
    """Return the names of a dict's tensors; empty for any other result."""
    if spec.type is dict and all(child.is_leaf() for child in spec.children()):
        return [str(key) for key in spec.context]
    return []


def _tensor(node: Any, name: Any, values: dict[str, Any]) -> TorchTensor:
    value = values.get(node)
    if not isinstance(value, torch.Tensor):
        raise ModelError(f"'{name}' is no tensor; programs are served whose inputs and outputs are all tensors")
    shape = tuple(dim if isinstance(dim, int) else -1 for dim in value.shape)
    return TorchTensor(str(name), value.dtype, shape)
