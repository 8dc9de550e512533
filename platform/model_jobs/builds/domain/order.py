"""Build order and result: arguments and JSON of `fairlead-serve build`. Pure.

{"schema": "fairlead.build-progress/v1", "stage": "calibrating: 3 of 64 rows"}      a line, as it goes
{"schema": "fairlead.build/v1", "digest": "sha256:...", "made": {"precision": ...}}    exit status 0
{"schema": "fairlead.build/v1", "error": "one sentence"}                               exit status 2
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from common.errors import InvalidInput, Unavailable
from integrations.clusters.base import JobResult, Resources

_SCHEMA, _PROGRESS_SCHEMA = "fairlead.build/v1", "fairlead.build-progress/v1"
_REFUSED, _TIMED_OUT = 2, 124
_SHAPE = r"[1-9]\d{0,8}(?:x[1-9]\d{0,8}){0,7}"
_PROFILE = re.compile(rf"(?:[^,:\s]+:{_SHAPE}:{_SHAPE}:{_SHAPE})(?:,[^,:\s]+:{_SHAPE}:{_SHAPE}:{_SHAPE})*")
_FOLDER = re.compile(r"\bmodel 'model' ")
"""The runtime names the model after its folder in the job, a name unknown to readers of the reason."""


class Target(StrEnum):
    """Runtimes of the built model."""

    ONNX = "onnx"
    TENSORRT = "tensorrt"


class Precision(StrEnum):
    """The datatype of weights and arithmetic."""

    FP32 = "fp32"
    FP16 = "fp16"
    INT8 = "int8"


@dataclass(frozen=True, slots=True)
class BuildOrder:
    """A build order.

    Attributes:
        profiles: of a plan: shapes of its optimization profiles, each as `x:1x128:8x128:32x128,y:...`.
        accelerator, products: the GPU or slice that it is built on (`Resources`).
        timeout_s: for everything, the model's transfer included.
    """

    target: Target = Target.ONNX
    precision: Precision = Precision.FP16
    profiles: tuple[str, ...] = ()
    optimization_level: int = 3
    accelerator: str = ""
    products: tuple[str, ...] = ()
    timeout_s: int = 3600

    def check(self) -> None:
        """Raise InvalidInput, naming the field, for an impossible build."""
        if self.target is Target.ONNX and self.precision is Precision.FP32:
            raise InvalidInput("an ONNX model is fp32 as it is; choose fp16 or int8", field="precision")
        if self.target is Target.ONNX and (self.profiles or self.accelerator):
            which = "profiles" if self.profiles else "accelerator"
            raise InvalidInput(f"{which} is for the target tensorrt; an ONNX model is built on the CPU", field=which)
        for profile in self.profiles:
            if not _PROFILE.fullmatch(profile):
                raise InvalidInput(
                    f"{profile[:80]!r} is not INPUT:MIN:USUAL:MAX, as in x:1x128:8x128:32x128", field="profiles"
                )

    def as_json(self) -> dict[str, Any]:
        """Return what `from_json` takes."""
        return {**asdict(self), "profiles": list(self.profiles), "products": list(self.products)}

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "BuildOrder":
        kinds = {"target": Target, "precision": Precision, "profiles": tuple, "products": tuple}
        return cls(**{name: kinds.get(name, lambda same: same)(value) for name, value in fields.items()})

    @property
    def words(self) -> str:
        """Return the build's target, as a part of a sentence."""
        precision = self.precision.value.upper()
        if self.target is Target.ONNX:
            return f"ONNX in {precision}"
        on = f" on {self.accelerator}" if self.accelerator else ""
        return f"TensorRT plan in {precision}{on}"

    @property
    def resources(self) -> Resources:
        """Return the resources of the build."""
        return Resources(accelerator=self.accelerator, products=self.products)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Return the arguments of `fairlead-serve build`, beside folders."""
        found = [f"--target={self.target}", f"--precision={self.precision}"]
        if self.target is Target.TENSORRT:
            found.append(f"--optimization-level={self.optimization_level}")
            found += [f"--profile={profile}" for profile in self.profiles]
        return tuple(found)


def progress_in(line: str) -> dict[str, Any] | None:
    """Return the progress in a line of a running build; None for other lines."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    is_progress = isinstance(found, dict) and found.get("schema") == _PROGRESS_SCHEMA
    return {"stage": str(found.get("stage", ""))[:200]} if is_progress else None


def read_report(result: JobResult) -> dict[str, Any]:
    """Return the result of an ended build.

    Raises:
        InvalidInput: the model cannot be built so, or not in time.
        Unavailable: the job ended without a result.
    """
    try:
        document = json.loads(result.output)
    except ValueError:
        document = None
    if isinstance(document, dict) and document.get("schema") == _SCHEMA:
        if result.exit_code == 0:
            return {"digest": str(document["digest"]), "made": _texts(document.get("made"))}
        if result.exit_code == _REFUSED:
            raise InvalidInput(_FOLDER.sub("the model ", str(document.get("error"))))
    without_answer = f"the build ended with exit code {result.exit_code} and no answer known here"
    if result.exit_code == _TIMED_OUT:
        raise InvalidInput(result.message or without_answer)
    raise Unavailable(result.message or without_answer)


def _texts(found: object) -> dict[str, str]:
    return {str(name): str(value) for name, value in found.items()} if isinstance(found, dict) else {}
