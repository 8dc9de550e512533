"""What axe-core finds wrong on a page for people who cannot see, hear or use it as others do."""

from functools import cache
from pathlib import Path

from playwright.sync_api import Page

SOURCE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
_RUN = """async (tags) => (await axe.run(document,
  {runOnly: {type: "tag", values: tags}, resultTypes: ["violations"]})).violations"""


def violations(page: Page) -> list[str]:
    """Return each violation of WCAG 2.2 AA with the elements it is about."""
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(_source())
    found = page.evaluate(_RUN, STANDARDS)
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes']]}" for each in found]


@cache
def _source() -> str:
    return SOURCE.read_text()
