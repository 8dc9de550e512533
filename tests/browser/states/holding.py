"""What must hold of every page, whatever its state: read out of the page as sentences, none where all is well."""

from playwright.sync_api import Page, expect

WATCH = """
window.refused = [];
window.shifted = {score: 0, elements: []};
document.addEventListener("securitypolicyviolation", (event) =>
  window.refused.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) {
    if (entry.hadRecentInput) continue;
    window.shifted.score += entry.value;
    for (const source of entry.sources)
      window.shifted.elements.push((source.node?.outerHTML ?? source.node?.textContent ?? "gone").slice(0, 120));
  }
}).observe({type: "layout-shift", buffered: true});
window.changes = 0;
document.addEventListener("readystatechange", () => new MutationObserver((list) => window.changes += list.length)
  .observe(document, {subtree: true, childList: true, characterData: true, attributes: true}), {once: true});
"""
"""Runs before a page's own script; the Content-Security-Policy has no say about it."""

_STICKING_OUT = """() => {
  const width = document.documentElement.clientWidth;
  const isCutAbove = (element) => {
    for (let at = element.parentElement; at && at !== document.body; at = at.parentElement)
      if (getComputedStyle(at).overflowX !== "visible") return true;
    return false;
  };
  const found = [...document.querySelectorAll(".card")].filter((card) => card.scrollWidth > card.clientWidth + 1)
    .map((card) => `${card.scrollWidth} px in a card of ${card.clientWidth}: ${card.outerHTML.slice(0, 140)}`);
  if (document.documentElement.scrollWidth > width)
    found.push(`the page is ${document.documentElement.scrollWidth} px wide, the screen ${width}`);
  for (const element of document.body.querySelectorAll("*")) {
    if (!(element instanceof HTMLElement || element instanceof SVGSVGElement)) continue;
    const box = element.getBoundingClientRect();
    if (box.width <= 1 || box.height <= 1) continue;
    const [from, to] = [Math.round(box.left), Math.round(box.right)];
    if ((to > width + 1 || from < -1) && !isCutAbove(element))
      found.push(`from ${from} to ${to} of ${width}: ${element.outerHTML.slice(0, 140)}`);
  }
  return found;
}"""

_CUT_OFF = """() => [...document.body.querySelectorAll("*")].filter((element) => {
  const style = getComputedStyle(element);
  if (!["hidden", "clip"].includes(style.overflowX) || style.textOverflow === "ellipsis") return false;
  return element.clientWidth > 1 && element.scrollWidth > element.clientWidth + 1;
}).map((element) => `${element.scrollWidth} px in ${element.clientWidth}: ${element.outerHTML.slice(0, 140)}`)"""

_TIMES = r"""() => {
  const exact = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/;
  const relative = /\d+ ?([smhd]|(second|minute|hour|day)s?) ago\b|\bin \d+ (second|minute|hour|day)s?\b|^a moment ago/;
  const found = [];
  for (const time of document.querySelectorAll("time")) {
    const told = exact.exec(time.title);
    const meant = new Date(time.dateTime);
    if (!told || Number.isNaN(meant.getTime())) found.push(`no exact time: ${time.outerHTML}`);
    else if (meant.toISOString().slice(0, 19) !== `${told[1]}T${told[2]}`) found.push(`two times: ${time.outerHTML}`);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const words = text.textContent.trim(), around = text.parentElement;
    if (!relative.test(words) || around.closest("script, pre, textarea, .visually-hidden")) continue;
    if (!around.closest("time[datetime], [title*=' UTC']")) found.push(`only relative: ${words.slice(0, 80)}`);
  }
  return found;
}"""

_HEADINGS = """() => [...document.querySelectorAll("h1")]
  .filter((each) => each.checkVisibility()).map((each) => each.innerText)"""

_SETTLED = """() => document.readyState === "complete" && document.fonts.status === "loaded"
  && [...document.querySelectorAll("live-stream")].every((each) => each.dataset.connection === "open")
  && [...document.querySelectorAll("traffic-plot .readout, evidence-plot .readout")]
    .every((each) => !/on (its|their) way/.test(each.textContent))"""


def settle(page: Page, *, is_live: bool) -> None:
    """Wait until all that comes by itself is there, and drawn."""
    if is_live:
        page.wait_for_function(_SETTLED)
    else:
        expect(page.locator("h1").first).to_be_visible()
    _drawn(page)


def resize(page: Page, width: int, height: int) -> None:
    """Show the page on a screen of that size; return when it is drawn there."""
    if page.viewport_size != {"width": width, "height": height}:
        page.set_viewport_size({"width": width, "height": height})
        _drawn(page)


def _drawn(page: Page) -> None:
    page.evaluate("() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


def changed_itself(page: Page) -> bool:
    """Return whether the page is not as its HTML has it any more: only then can anything move."""
    return bool(page.evaluate("window.changes"))


def sticking_out(page: Page) -> list[str]:
    """Return what leaves the screen sideways where nothing above it scrolls, cards that are too small, and the page."""
    found: list[str] = page.evaluate(_STICKING_OUT)
    return found


def cut_off(page: Page) -> list[str]:
    """Return the elements whose content is wider than they are, and is neither scrolled nor marked as cut."""
    found: list[str] = page.evaluate(_CUT_OFF)
    return found


def untold_times(page: Page) -> list[str]:
    """Return the times without an exact UTC to hover over, and relative words outside of any time."""
    found: list[str] = page.evaluate(_TIMES)
    return found


def headings(page: Page) -> list[str]:
    """Return the text of each visible first-level heading."""
    found: list[str] = page.evaluate(_HEADINGS)
    return found


def refused_by_policy(page: Page) -> list[str]:
    """Return what the Content-Security-Policy refused since the page began."""
    found: list[str] = page.evaluate("window.refused")
    return found


def shift(page: Page) -> tuple[float, list[str]]:
    """Return how much of the page moved by itself (the Layout Instability API's score), and what did."""
    found = page.evaluate("window.shifted")
    return found["score"], found["elements"]
