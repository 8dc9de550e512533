"""Execution accelerators: optimization.execution_accelerators of config.pbtxt, as values (Triton: optimization)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from serving_runtime.common.errors import ModelError

_BACKEND = "onnxruntime"


@dataclass(frozen=True, slots=True)
class Accelerator:
    """One accelerator of a model; earlier ones take precedence."""

    name: str
    parameters: Mapping[str, str]


def accelerators(config: Any, kind: str) -> tuple[Accelerator, ...]:
    """Return the accelerators of a ModelConfig message in their order; raises ModelError.

    Args:
        kind: gpu or cpu, whichever an instance runs on.
    """
    given = getattr(config.optimization.execution_accelerators, f"{kind}_execution_accelerator")
    if given and config.backend != _BACKEND:
        raise ModelError(
            f"optimization.execution_accelerators are those of ONNX Runtime; backend '{config.backend}' has none"
        )
    found = tuple(Accelerator(each.name, dict(each.parameters)) for each in given)
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ModelError(f"optimization.execution_accelerators names '{twice}' twice")
    return found
