"""What axe-core finds wrong on a page for people who cannot see, hear or use it as others do."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from playwright.sync_api import Page

SOURCE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
CONTRAST = ("color-contrast",)
"""The rules that a theme can break: themes differ in colour alone."""


def violations(page: Page, *, only: Sequence[str] | None = None) -> list[str]:
    """Return each violation of WCAG 2.2 AA, or of the named rules, with the elements it is about."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    wanted = {"type": "tag", "values": STANDARDS} if only is None else {"type": "rule", "values": list(only)}
    found = page.evaluate(
        "async (wanted) => (await axe.run(document, {runOnly: wanted, resultTypes: ['violations']})).violations", wanted
    )
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes']]}" for each in found]


@cache
def _source() -> str:
    return SOURCE.read_text()
