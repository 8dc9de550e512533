"""Template filters of models' pages: descriptions, sizes, durations, rates and tensors."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import template
from django.utils.safestring import SafeString, mark_safe

from common import markdown
from registry.models import ModelImport
from registry.web.latency_plot import duration

register = template.Library()
_STEPS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@register.filter(name="markdown")
def markdown_filter(text: str) -> SafeString:
    """Return the HTML of a description."""
    return mark_safe(markdown.render(text))  # noqa: S308 - the renderer escapes what is not its own


@register.filter
def is_web_address(text: str) -> bool:
    """Return whether the text is shown as a link."""
    return text.startswith(("http://", "https://")) and markdown.is_link(text)


@register.filter
def size(count: int) -> str:
    """Return `1.5 MiB` for 1572864."""
    value, step = float(count), 0
    while value >= 1024 and step < len(_STEPS) - 1:
        value, step = value / 1024, step + 1
    return f"{value:.0f}\u00a0{_STEPS[step]}" if step == 0 or value >= 100 else f"{value:.1f}\u00a0{_STEPS[step]}"


@register.filter
def latency(us: float) -> str:
    """Return `1.2 ms` for 1200 microseconds."""
    return duration(us)


@register.filter
def seconds(value: float) -> str:
    """Return `4.2 ms` for 0.0042 seconds."""
    return duration(value * 1_000_000)


@register.filter
def rate(per_second: float) -> str:
    """Return `12,300` for 12345: three significant digits suffice for a rate."""
    digits = max(0, len(str(int(per_second))) - 3)
    return f"{round(per_second, -digits) if digits else round(per_second, 1):,.{0 if digits else 1}f}"


@register.filter
def change(percent: float) -> str:
    """Return `+12 %` or `-3.4 %`."""
    return f"{percent:+.0f}\u00a0%" if abs(percent) >= 10 else f"{percent:+.1f}\u00a0%"


@register.filter
def came(row: ModelImport) -> str:
    """Return the progress of an import."""
    return size(row.bytes_done) if row.bytes_total is None else f"{size(row.bytes_done)} of {size(row.bytes_total)}"


@register.filter
def tensor(spec: Mapping[str, object]) -> str:
    """Return `FP32 [-1, 4]`, and whether an input is optional."""
    return f"{spec.get('datatype')} {spec.get('shape')}{', optional' if spec.get('optional') else ''}"


@register.filter
def signature(document: Mapping[str, Any]) -> str:
    """Return `FP32 [-1, 4] to INT64 [-1]`, or their number where there are several."""
    sides = [_side(document.get(key) or [], one) for key, one in (("inputs", "input"), ("outputs", "output"))]
    return " to ".join(sides) if all(sides) else ""


def _side(specs: Sequence[Mapping[str, object]], one: str) -> str:
    return f"{len(specs)} {one}s" if len(specs) > 1 else "".join(tensor(spec) for spec in specs)
