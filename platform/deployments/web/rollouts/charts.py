"""Comparison charts: a histogram of differences by size, and the agreement on a scale. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from deployments.domain.comparison.summary import Decade, OutputSummary, Spread, Summary

MOST_DECADES = 10
_HEIGHT, _BAR_WIDTH = 40.0, 34
_LEAST_HEIGHT = 1.5  # of a bar with a single row, beside one with thousands
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SCALE_PERCENT = (100.0, 50.0, 20.0, 10.0, 5.0, 2.0, 1.0)


@dataclass(frozen=True, slots=True)
class Bar:
    """A column of the histogram; lengths are in the drawing's own units, `middle` is the place of its label."""

    label: str
    rows: int
    x: int
    middle: float
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Histogram:
    """Rows by their largest difference; `words` are the same as text."""

    title: str
    bars: tuple[Bar, ...]
    width: int
    words: str
    spread: Spread


@dataclass(frozen=True, slots=True)
class OutputChart:
    """One output with its histograms."""

    output: OutputSummary
    histograms: tuple[Histogram, ...]


@dataclass(frozen=True, slots=True)
class Scale:
    """The agreement with its interval and its limit, 0 to 100 along a scale that begins at `begin_percent`."""

    begin_percent: float
    low: float
    width: float
    value: float
    limit: float


@dataclass(frozen=True, slots=True)
class ShownTensor:
    """One tensor of a stored request as text; `shadow` is empty for an input."""

    name: str
    kind: str
    stable: str
    shadow: str = ""


def output_charts(summary: Summary) -> list[OutputChart]:
    """Return the charts of each output."""
    return [OutputChart(output, tuple(_histograms(output))) for output in summary.outputs]


def scale_of(summary: Summary) -> Scale | None:
    """Return the agreement on the shortest scale that ends at 100 %; None without any pair."""
    if summary.agreement_percent is None:
        return None
    limit = summary.measurement.limit or 0.0
    least = min(summary.low_percent, limit)
    length = next((each for each in reversed(_SCALE_PERCENT) if 100 - each <= least), 100.0)

    def along(percent: float) -> float:
        return round(100 * (percent - (100 - length)) / length, 2)

    low, high = along(summary.low_percent), along(summary.high_percent)
    return Scale(100 - length, low, round(high - low, 2), along(summary.agreement_percent), along(limit))


def tensors_of(request: Mapping[str, Any], stable: Mapping[str, Any], shadow: Mapping[str, Any]) -> list[ShownTensor]:
    """Return the tensors of a stored request: its inputs, then the outputs of both sides beside each other."""
    inputs = [ShownTensor(f"input {name}", _kind(tensor), _values(tensor)) for name, tensor in request.items()]
    failed = [isinstance(answer.get("error"), str) for answer in (stable, shadow)]
    if any(failed):
        stable, shadow = ({"answer": answer} for answer in (stable, shadow))
    outputs = [
        ShownTensor(
            "answer" if any(failed) else f"output {name}",
            _kind(stable.get(name) or shadow.get(name) or {}),
            _values(stable.get(name)),
            _values(shadow.get(name)),
        )
        for name in dict.fromkeys((*stable, *shadow))
    ]
    return inputs + outputs


def _histograms(output: OutputSummary) -> list[Histogram]:
    titled = (("Absolute difference", output.absolute), ("Relative difference", output.relative))
    return [_histogram(title, spread) for title, spread in titled if spread is not None]


def _histogram(title: str, spread: Spread) -> Histogram:
    columns = [("0", "no difference", spread.zeros)]
    columns += [(label, f"{label} and more", rows) for label, rows in _decades(spread.decades)]
    columns += [("NaN", "without a size", spread.sizeless)] if spread.sizeless else []
    most = max(rows for *_, rows in columns)
    bars = tuple(_bar(label, rows, x, most) for (label, _, rows), x in zip(columns, count(0, _BAR_WIDTH), strict=False))
    words = ", ".join(f"{name}: {rows}" for _, name, rows in columns if rows)
    return Histogram(title, bars, len(bars) * _BAR_WIDTH, f"{title}, rows: {words}", spread)


def _decades(decades: tuple[Decade, ...]) -> list[tuple[str, int]]:
    """Return labels and rows of the largest decades; rows below them count for the first one."""
    shown = list(decades[-MOST_DECADES:])
    rest = sum(each.count for each in decades[:-MOST_DECADES])
    labels = [f"10{str(each.power).translate(_SUPERSCRIPTS)}" for each in shown]
    rows = [each.count for each in shown]
    if rest:
        labels[0], rows[0] = f"≤{labels[0]}", rows[0] + rest
    return list(zip(labels, rows, strict=True))


def _bar(label: str, rows: int, x: int, most: int) -> Bar:
    height = round(max(_HEIGHT * rows / most, _LEAST_HEIGHT), 2) if rows else 0.0
    return Bar(label, rows, x, x + (_BAR_WIDTH - 4) / 2, round(_HEIGHT - height, 2), height)


def _kind(tensor: Mapping[str, Any]) -> str:
    return f"{tensor.get('datatype', '')} {tensor.get('shape', '')}".strip()


def _values(tensor: Mapping[str, Any] | None) -> str:
    """Return the first values of a stored tensor."""
    if tensor is None:
        return "none"
    if "values" not in tensor:
        return str(tensor["error"]) if isinstance(tensor.get("error"), str) else "answered"
    values = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in tensor["values"])
    elements = 1
    for size in tensor["shape"]:
        elements *= size
    more = elements - len(tensor["values"])
    return f"{values} … {more} more" if more > 0 else values
