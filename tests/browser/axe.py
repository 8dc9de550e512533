"""What axe-core finds wrong on a page for people who cannot see, hear or use it as others do."""

from pathlib import Path

from playwright.sync_api import Page

SOURCE = Path(__file__).parents[2] / "frontend/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def violations(page: Page) -> list[str]:
    """Return each violation of WCAG 2.2 AA with the elements it is about."""
    page.evaluate(SOURCE.read_text())
    found = page.evaluate("rules => axe.run(document, {runOnly: {type: 'tag', values: rules}})", RULES)
    return [f"{each['id']}: {[node['html'][:160] for node in each['nodes']]}" for each in found["violations"]]
