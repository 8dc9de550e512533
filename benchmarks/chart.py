"""A line in a frame as SVG, for figures in the documentation; legible on light and on dark pages."""

from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 640, 320
LEFT, RIGHT, TOP, BOTTOM = 56, 16, 36, 48
TICKS = 5


def steps(points: Sequence[tuple[float, float]], *, title: str, across: str, up: str, highest: float = 100.0) -> str:
    """Return the chart of a line through `points`, which begins at 0 on both axes."""
    furthest = _round_up(max((x for x, _ in points), default=1.0))

    def place(x: float, y: float) -> tuple[float, float]:
        across_px = LEFT + (WIDTH - LEFT - RIGHT) * x / furthest
        return round(across_px, 1), round(HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / highest, 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" '
        'font-family="system-ui, sans-serif" font-size="12" fill="#7a8290">',
        f'<text x="{LEFT}" y="20" font-size="14" font-weight="600">{escape(title)}</text>',
    ]
    for tick in range(TICKS + 1):
        x, y = furthest * tick / TICKS, highest * tick / TICKS
        (x_px, bottom), (left, y_px) = place(x, 0), place(0, y)
        parts.append(f'<path d="M{left} {y_px}H{WIDTH - RIGHT}" stroke="#7a8290" stroke-opacity="0.25"/>')
        parts.append(f'<text x="{x_px}" y="{bottom + 18}" text-anchor="middle">{x:g}</text>')
        parts.append(f'<text x="{left - 8}" y="{y_px + 4}" text-anchor="end">{y:g}</text>')
    line = " ".join(f"{x},{y}" for x, y in (place(*point) for point in points))
    parts.append(f'<polyline points="{line}" fill="none" stroke="#3b7ddd" stroke-width="2"/>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>')
    parts.append(f'<text transform="translate(14 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">{escape(up)}</text>')
    return "\n".join([*parts, "</svg>\n"])


def _round_up(value: float) -> float:
    """Return a round number that is not smaller."""
    step = 10 ** (len(str(int(value))) - 1) / 2
    return max(step, -(-value // step) * step)
