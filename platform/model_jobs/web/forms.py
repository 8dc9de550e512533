"""Order forms of builds and tunings of a version: applicable fields, and the order they describe. Pure.

The API takes the same orders as JSON (`model_jobs.builds.domain.order`, `model_jobs.tunings.domain.order`).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from common import durations
from common.errors import InvalidInput
from integrations.clusters.base import is_accelerator
from model_jobs.builds.domain.order import BuildOrder, Precision, Target
from model_jobs.tunings.domain.order import TuningOrder
from registry.domain.signature import Signature, Tensor

ONNX = "onnxruntime_onnx"
"""The platform of versions that can be built from."""

PLAN = "plan"
_PRODUCT = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_MOST_PROFILES, _MOST_PRODUCTS = 8, 20
_SHORTEST_BUDGET_S, _LONGEST_BUDGET_S = 5, 7200
_DIMS = re.compile(r"[1-9]\d{0,6}(x[1-9]\d{0,6}){0,7}")


@dataclass(frozen=True, slots=True)
class Number:
    """A field for an integer; empty leaves it to the search."""

    name: str
    label: str
    help: str
    most: int


NUMBERS = (
    Number("rows", "Rows of a request", "1 when left empty", 10_000),
    Number("largest_request_rows", "Rows of the largest request", "clients send no more; as many as now", 10_000),
    Number("max_batch_size", "Largest batch to try", "128 when left empty", 10_000),
    Number("max_instances", "Most instances to try", "the cores, or 4 on a GPU", 1024),
    Number("max_concurrency", "Maximum concurrent requests", "256 when left empty", 4096),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """A field for an input's variable dimensions, without that of the batch."""

    name: str
    input: str
    shape: str
    example: str


def why_unbuilt(platform: str) -> str:
    """Return why versions of a platform cannot be built from; empty where they can."""
    if platform == ONNX:
        return ""
    return f"builds begin with an ONNX model, and this one is {platform or 'of a format that is not known yet'}"


def has_calibration(source_name: str) -> bool:
    """Return whether a version may have rows for INT8 beside its model: one pushed as a file has none."""
    return not source_name.lower().endswith(".onnx")


def profile_of(signature: Signature) -> str:
    """Return suggested shapes of a plan; empty where no dimension varies."""
    if not any(-1 in tensor.shape for tensor in signature.inputs):
        return ""
    return ",".join(_profile(tensor) for tensor in signature.inputs)


def build_order(said: Mapping[str, str]) -> BuildOrder:
    """Return the form's order; a build on a service's GPU leaves `accelerator` empty.

    Raises:
        InvalidInput: a field is wrong, by its name.
    """
    kind = said.get("kind", "")
    timeout_s = _seconds(said.get("timeout", ""), "timeout", 30, 86_400) or BuildOrder().timeout_s
    if kind != PLAN:
        if kind not in (Precision.FP16, Precision.INT8):
            raise InvalidInput(f"kind is {kind[:40]!r}; expected fp16, int8 or plan", field="kind")
        return BuildOrder(precision=Precision(kind), timeout_s=timeout_s)
    precision = said.get("precision", "")
    if precision not in [*Precision]:
        raise InvalidInput(
            f"precision is {precision[:40]!r}; expected one of {', '.join(Precision)}", field="precision"
        )
    order = BuildOrder(
        target=Target.TENSORRT,
        precision=Precision(precision),
        profiles=_listed(said.get("profiles", ""), "\n", "profiles", _MOST_PROFILES),
        accelerator=_accelerator(said.get("accelerator", "").strip()),
        products=_products(said.get("products", "")),
        optimization_level=_whole(said, "optimization_level", 0, 5, 3),
        timeout_s=timeout_s,
    )
    order.check()
    return order


def shapes_of(signature: Signature) -> tuple[Shape, ...]:
    """Return a field for each input that has a variable dimension beside the batch's."""
    return tuple(
        Shape(f"shape {tensor.name}", tensor.name, str(list(tensor.shape)), _dims(tensor))
        for tensor in signature.inputs
        if -1 in tensor.shape[1:]
    )


def tuning_order(said: Mapping[str, str], shapes: Sequence[Shape]) -> TuningOrder:
    """Return the form's order; raises InvalidInput by the field's name."""
    text = said.get("max_latency_p99_ms", "").strip().replace(",", ".")
    try:
        limit_ms = float(text)
    except ValueError:
        limit_ms = 0.0
    if not (isfinite(limit_ms) and 0.001 <= limit_ms <= 3_600_000):
        raise InvalidInput(
            f"the longest latency is {text[:40]!r}; expected milliseconds, such as 20", field="max_latency_p99_ms"
        )
    given = {each.name: _whole(said, each.name, 1, each.most, 0) for each in NUMBERS}
    budget_s = _seconds(said.get("budget", ""), "budget", _SHORTEST_BUDGET_S, _LONGEST_BUDGET_S)
    return TuningOrder(
        limit_ms,
        shapes={shape.input: dims for shape in shapes if (dims := _typed_dims(said.get(shape.name, ""), shape.input))},
        **{name: value for name, value in given.items() if value},
        **({} if budget_s is None else {"budget_s": budget_s}),
    )


def _profile(tensor: Tensor) -> str:
    sides = zip(*(_range(size, is_batch=index == 0) for index, size in enumerate(tensor.shape)), strict=True)
    return ":".join([tensor.name, *("x".join(map(str, side)) for side in sides)])


def _range(size: int, *, is_batch: bool) -> tuple[int, int, int]:
    """Return the minimum, the optimum and the maximum of a dimension."""
    if size != -1:
        return size, size, size
    return (1, 8, 32) if is_batch else (1, 128, 512)


def _dims(tensor: Tensor) -> str:
    return "x".join(str(size if size != -1 else 1) for size in tensor.shape[1:])


def _typed_dims(text: str, name: str) -> tuple[int, ...]:
    text = text.strip().replace(" ", "")
    if text and not _DIMS.fullmatch(text):
        raise InvalidInput(
            f"the shape of {name} is {text[:60]!r}; expected sizes such as 128 or 3x224x224", field="shapes"
        )
    return tuple(int(size) for size in text.split("x")) if text else ()


def _whole(said: Mapping[str, str], name: str, least: int, most: int, default: int) -> int:
    text = said.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise InvalidInput(f"{name} is {text[:40]!r}; expected a whole number from {least} to {most:,}", field=name)
    return int(text)


def _seconds(text: str, name: str, least: int, most: int) -> int | None:
    if not text.strip():
        return None
    seconds = durations.parse(text.strip(), field=name).total_seconds()
    if seconds != int(seconds) or not least <= seconds <= most:
        raise InvalidInput(
            f"{name} is {text.strip()[:40]}; expected whole seconds from {least}s to {most}s", field=name
        )
    return int(seconds)


def _accelerator(text: str) -> str:
    if text and not is_accelerator(text):
        raise InvalidInput(
            f"the GPU is {text[:60]!r}; expected nvidia.com/gpu or a slice such as nvidia.com/mig-1g.10gb",
            field="accelerator",
        )
    return text


def _products(text: str) -> tuple[str, ...]:
    found = _listed(text.replace(",", "\n"), "\n", "products", _MOST_PRODUCTS)
    if wrong := next((each for each in found if not _PRODUCT.fullmatch(each)), None):
        raise InvalidInput(
            f"products has {wrong[:60]!r}; expected labels such as NVIDIA-A100-SXM4-80GB", field="products"
        )
    return found


def _listed(text: str, by: str, name: str, most: int) -> tuple[str, ...]:
    found = tuple(part.strip() for part in text.split(by) if part.strip())
    if len(found) > most or any(len(part) > 1000 for part in found):
        raise InvalidInput(
            f"{name} has {len(found)} entries; expected at most {most}, of 1000 characters each", field=name
        )
    return found
