"""Which colour lies on which: the roles of the colour tokens, and contrast as WCAG 2.2 counts it.

Every text colour may lie on every ground, so a style needs no pair of its own: it takes a text colour and a ground.
`test_contrast.py` holds these roles against `tokens.css` and the styles, `refused` against a page in a browser.
"""

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Literal

from playwright.sync_api import Page

STYLES = Path(__file__).parents[2] / "frontend/styles"
TOKENS = STYLES / "tokens.css"
Theme = Literal["light", "dark"]
THEMES: tuple[Theme, ...] = ("light", "dark")

TEXT = {
    *("ink", "ink-soft", "ink-faint", "accent", "accent-strong", "canary-ink"),
    *("good", "busy", "wait", "doubt", "bad", "idle"),
}
GROUNDS = {
    *("paper", "surface", "sunken"),
    *("good-wash", "busy-wash", "wait-wash", "doubt-wash", "bad-wash", "idle-wash"),
}
FILLED = {"accent", "accent-strong"}
"""Grounds for `ON_FILLED` alone."""
ON_FILLED = "accent-ink"
MARKS = {"stable", "canary", "focus"}
"""Lines, areas and dots that mean something: no text has these colours."""
MARKED = {"paper", "surface", "sunken"}
"""What marks lie on. The share of a waiting canary lies on a wash too (2.9 there); a text beside it has the number."""
LINES = {"line", "line-strong"}
"""Part what words and space part already, so that no contrast is asked of them."""
SHADES = {"shadow", "shadow-l", "veil"}
"""Darken what lies below; nothing is read in them."""

OF_TEXT, OF_MARKS = 4.5, 3.0
"""The least contrast: WCAG 2.2, 1.4.3 (no text is counted as large) and 1.4.11."""

_ON_PAGE = """(names) => {
  const root = document.documentElement, nameOf = {}, found = new Set();
  names.forEach((name, index) => {
    root.style.setProperty(`--${name}`, `rgb(1, 2, ${index})`);
    nameOf[`rgb(1, 2, ${index})`] = name;
  });
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return nameOf[colour] ?? colour;
    }
    return "nothing";
  };
  for (const element of document.querySelectorAll("body, body *")) {
    const isField = element.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=hidden])");
    const hasWords = [...element.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());
    if (!(isField || hasWords) || element.matches("option") || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const colour = element instanceof SVGElement ? style.fill : style.color;
    found.add(JSON.stringify([nameOf[colour] ?? colour, ground(element)]));
  }
  names.forEach((name) => root.style.removeProperty(`--${name}`));
  return [...found].map((each) => JSON.parse(each));
}"""


def tokens(theme: Theme, text: str | None = None) -> dict[str, str]:
    """Return the colour tokens of a theme as `#rrggbb`, by their name without dashes."""
    light, _, dark = (TOKENS.read_text() if text is None else text).partition("@media")
    found = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", light))
    return found | (dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6});", dark)) if theme == "dark" else {})


def pairs() -> Iterator[tuple[str, str, float]]:
    """Yield what may lie on what, with the least contrast."""
    for colour, ground in product(sorted(TEXT), sorted(GROUNDS)):
        yield colour, ground, OF_TEXT
    for ground in sorted(FILLED):
        yield ON_FILLED, ground, OF_TEXT
    for colour, ground in product(sorted(MARKS), sorted(MARKED)):
        yield colour, ground, OF_MARKS


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours `#rrggbb`, 1 to 21."""
    darker, lighter = sorted((_luminance(one), _luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def grey(colour: str) -> str:
    """Return what `filter: grayscale(1)` makes of a colour: what a page that is not live any more shows."""
    red, green, blue = _parts(colour)
    return "#" + f"{round(0.2126 * red + 0.7152 * green + 0.0722 * blue):02x}" * 3


def _parts(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    """Return the relative luminance, as WCAG 2.2 defines it."""
    shares = [part / 255 for part in _parts(colour)]
    red, green, blue = (each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in shares)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def refused(page: Page) -> list[str]:
    """Return the texts of a page that lie on what they may not lie on, and colours that are no tokens.

    Each token gets a colour of its own meanwhile, since a theme may give two of them the same.
    """
    allowed = {(colour, ground) for colour, ground, least in pairs() if least == OF_TEXT}
    found = page.evaluate(_ON_PAGE, list(tokens("light")))
    return [f"{colour} on {ground}" for colour, ground in found if (colour, ground) not in allowed]
