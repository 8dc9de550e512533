"""Line charts as SVG, for the curves in the documentation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from math import log10

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 400, 70, 210, 40, 55
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b")


@dataclass(frozen=True)
class Chart:
    """A chart; `lines` holds points (x, y) by name, a name that ends in `(dashed)` is drawn so.

    Attributes:
        log_x: whether x is logarithmic.
    """

    title: str
    x: str
    y: str
    x_ticks: Sequence[float]
    y_ticks: Sequence[float]
    lines: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    log_x: bool = False

    def svg(self) -> str:
        """Return the picture."""
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
            f'font-size="12" role="img"><title>{escape(self.title)}</title>',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(self.title)}</text>',
            *self._axes(),
            *(self._line(index, name) for index, name in enumerate(self.lines)),
            "</svg>\n",
        ]
        return "\n".join(parts)

    def _axes(self) -> list[str]:
        bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
        parts = []
        for tick in self.x_ticks:
            at = self._at_x(tick)
            parts.append(f'<path d="M{at:.1f} {TOP}V{bottom}" stroke="#dddddd"/>')
            parts.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>')
        for tick in self.y_ticks:
            at = self._at_y(tick)
            parts.append(f'<path d="M{LEFT} {at:.1f}H{right}" stroke="#dddddd"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{tick:g}</text>')
        middle = (TOP + bottom) / 2
        parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(self.x)}</text>')
        turned = f'transform="rotate(-90 18 {middle})"'
        parts.append(f'<text x="18" y="{middle}" text-anchor="middle" {turned}>{escape(self.y)}</text>')
        return parts

    def _line(self, index: int, name: str) -> str:
        colour = COLOURS[index % len(COLOURS)]
        label = name.removesuffix(" (dashed)")
        dashes = ' stroke-dasharray="6 4"' if label != name else ""
        points = " ".join(f"{self._at_x(x):.1f},{self._at_y(y):.1f}" for x, y in self.lines[name])
        at, y = WIDTH - RIGHT + 14, TOP + 12 + 20 * index
        stroke = f'fill="none" stroke="{colour}" stroke-width="2"{dashes}'
        return (
            f'<polyline points="{points}" {stroke}/><path d="M{at} {y - 4}h24" {stroke}/>'
            f'<text x="{at + 30}" y="{y}">{escape(label)}</text>'
        )

    def _at_x(self, x: float) -> float:
        first, last = self.x_ticks[0], self.x_ticks[-1]
        x = min(max(x, first), last)
        part = (log10(x) - log10(first)) / (log10(last) - log10(first)) if self.log_x else (x - first) / (last - first)
        return LEFT + part * (WIDTH - LEFT - RIGHT)

    def _at_y(self, y: float) -> float:
        first, last = self.y_ticks[0], self.y_ticks[-1]
        return HEIGHT - BOTTOM - (min(max(y, first), last) - first) / (last - first) * (HEIGHT - TOP - BOTTOM)
