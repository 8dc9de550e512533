"""Throughput-latency frontier as SVG that is legible on light and on dark pages. Pure."""

from collections.abc import Callable, Mapping, Sequence
from html import escape
from math import floor, log10
from typing import Any

_WIDTH, _HEIGHT = 640, 360
_LEFT, _RIGHT, _TOP, _BOTTOM = 72, 20, 44, 52
_GREY, _BLUE, _RED = "#7a8290", "#3b7ddd", "#c2410c"

_Place = Callable[[float, float], tuple[float, float]]


def plot(document: Mapping[str, Any], title: str) -> str:
    """Return all points of a `fairlead.tune/v1` document: p99 across, logarithmic, and requests a second up."""
    points = document["points"]
    limit = document["max_latency_p99_ms"]
    across = [point["p99_ms"] for point in points] + [limit]
    left, right = min(across) / 1.15, max(across) * 1.15
    top, ticks = _ticks(max((point["requests_per_s"] for point in points), default=1.0))

    def place(ms: float, per_s: float) -> tuple[float, float]:
        share = log10(ms / left) / log10(right / left)
        x_px = _LEFT + (_WIDTH - _LEFT - _RIGHT) * share
        return round(x_px, 1), round(_HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * per_s / top, 1)

    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="12" fill="{_GREY}">'
    )
    parts = [head, f'<text x="{_LEFT}" y="20" font-size="14" font-weight="600">{escape(title)}</text>']
    parts += _axes(place, ticks, _latencies(left, right))
    parts += _limit(place, limit, top)
    parts += [_dot(place, point, _GREY, 2.5, 0.55) for point in points]
    line = " ".join(f"{x},{y}" for x, y in (place(*_at(point)) for point in document["frontier"]))
    parts.append(f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="2"/>')
    parts += [_dot(place, point, _BLUE, 3.5, 1) for point in document["frontier"]]
    for label, point, below in (("as it is", document["baseline"], True), ("chosen", document["chosen"], False)):
        if point is not None:
            parts += _ring(place, point, label, below=below)
    return "\n".join([*parts, "</svg>\n"])


def _axes(place: _Place, ups: Sequence[float], across: Sequence[float]) -> list[str]:
    parts = []
    for up in ups:
        _, y = place(across[0] if across else 1.0, up)
        parts.append(f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="{_GREY}" stroke-opacity="0.25"/>')
        parts.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{up:,g}</text>')
    for ms in across:
        x, y = place(ms, 0)
        parts.append(f'<path d="M{x} {y}v5" stroke="{_GREY}" stroke-opacity="0.5"/>')
        parts.append(f'<text x="{x}" y="{y + 18}" text-anchor="middle">{ms:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 10}" text-anchor="middle">99th percentile of latency, ms</text>')
    turned = f'transform="translate(14 {_HEIGHT / 2}) rotate(-90)"'
    parts.append(f'<text {turned} text-anchor="middle">requests a second</text>')
    return parts


def _limit(place: _Place, limit_ms: float, top: float) -> list[str]:
    (x, bottom), (_, high) = place(limit_ms, 0), place(limit_ms, top)
    return [
        f'<path d="M{x} {high}V{bottom}" stroke="{_RED}" stroke-dasharray="4 4"/>',
        f'<text x="{x}" y="{high - 5}" text-anchor="middle" fill="{_RED}">limit {limit_ms:g} ms</text>',
    ]


def _dot(place: _Place, point: Mapping[str, Any], colour: str, radius: float, opacity: float) -> str:
    x, y = place(*_at(point))
    return f'<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}" fill-opacity="{opacity}"/>'


def _ring(place: _Place, point: Mapping[str, Any], label: str, *, below: bool) -> list[str]:
    x, y = place(*_at(point))
    up_px = y + (18 if below else -8)
    anchor, shift = ("end", -10) if x > _WIDTH / 3 else ("start", 10)
    return [
        f'<circle cx="{x}" cy="{y}" r="7" fill="none" stroke="{_BLUE}" stroke-width="2"/>',
        f'<text x="{x + shift}" y="{up_px}" text-anchor="{anchor}" font-weight="600">{label}</text>',
    ]


def _at(point: Mapping[str, Any]) -> tuple[float, float]:
    return point["p99_ms"], point["requests_per_s"]


def _ticks(most: float) -> tuple[float, list[float]]:
    """Return a round number that is not smaller than `most`, and round numbers up to it."""
    step = 10.0 ** floor(log10(max(most, 1.0)))
    step = next(part * step for part in (0.2, 0.5, 1.0, 2.0) if most <= 5 * part * step or part == 2.0)
    count = int(-(-most // step))
    return count * step, [step * number for number in range(count + 1)]


def _latencies(left: float, right: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two times."""
    powers = range(floor(log10(left)), floor(log10(right)) + 1)
    return [part * 10.0**power for power in powers for part in (1, 2, 5) if left <= part * 10.0**power <= right]
