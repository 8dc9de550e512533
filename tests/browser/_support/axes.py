"""The labels under a drawing's time axis: a canvas keeps no text, so what is written onto it is noted."""

from itertools import pairwise

from playwright.sync_api import Locator, Page

_NOTE = """
const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
CanvasRenderingContext2D.prototype.clearRect = function (...where) {
  this.canvas.written = [];
  return clearRect.apply(this, where);
};
CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
  const scale = window.devicePixelRatio;
  (this.canvas.written ??= []).push({ text, x: x / scale, y: y / scale, width: this.measureText(text).width / scale });
  return fillText.call(this, text, x, y, ...rest);
};
"""
_LOWEST = """canvas => {
  const written = (canvas.written ?? []).filter((each) => each.text !== "");
  const lowest = Math.max(...written.map((each) => each.y));
  return written.filter((each) => each.y === lowest).sort((one, other) => one.x - other.x);
}"""


def note_labels(page: Page) -> None:
    """Note what drawings write, on pages that are opened from now on."""
    page.add_init_script(_NOTE)


def time_labels(canvas: Locator) -> list[str]:
    """Return the labels of a drawing's time axis from left to right; AssertionError where two of them overlap."""
    labels = canvas.evaluate(_LOWEST)
    for one, other in pairwise(labels):
        gap = other["x"] - one["x"] - (one["width"] + other["width"]) / 2
        assert gap >= 2, f"{one['text']!r} and {other['text']!r} are {gap:.0f} px apart"
    return [label["text"] for label in labels]
