"""Requests a second of every server as bars, as SVG that is legible on light and on dark pages. Pure."""

from collections.abc import Mapping, Sequence
from html import escape
from math import log10

from benchmarks.serving.report import OURS, Cell, Place

_WIDTH, _LABEL, _NUMBER, _ROW, _TITLE, _GAP = 640, 96, 92, 22, 30, 14
_GREY, _BLUE = "#7a8290", "#3b7ddd"


def bars(found: Mapping[Place, Mapping[str, Cell]], places: Sequence[tuple[Place, str]]) -> str:
    """Return a block of bars for each of the places that was measured, the lengths logarithmic."""
    parts: list[str] = []
    top = 0
    for place, title in places:
        servers = sorted(found.get(place, {}).items(), key=lambda item: -item[1].per_s)
        if not servers:
            continue
        parts.append(f'<text x="0" y="{top + 18}" font-size="14" font-weight="600">{escape(title)}</text>')
        top += _TITLE
        for server, cell in servers:
            parts += _bar(server, cell.per_s, top, most=servers[0][1].per_s, least=servers[-1][1].per_s)
            top += _ROW
        top += _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {max(top, 1)}" role="img" '
        f'aria-label="Requests a second by server" font-family="system-ui, sans-serif" font-size="12" fill="{_GREY}">'
    )
    return "\n".join([head, *parts, "</svg>\n"])


def _bar(server: str, per_s: float, top: int, *, most: float, least: float) -> list[str]:
    room = _WIDTH - _LABEL - _NUMBER
    share = 1.0 if most <= least else 0.1 + 0.9 * log10(per_s / least) / log10(most / least)
    length = round(room * share, 1)
    colour = _BLUE if server == OURS else _GREY
    opacity = "1" if server == OURS else "0.55"
    return [
        f'<text x="{_LABEL - 8}" y="{top + 14}" text-anchor="end">{escape(server)}</text>',
        f'<rect x="{_LABEL}" y="{top + 2}" width="{length}" height="{_ROW - 6}" rx="2" fill="{colour}" '
        f'fill-opacity="{opacity}"/>',
        f'<text x="{_LABEL + length + 6}" y="{top + 14}">{per_s:,.0f}</text>',
    ]
