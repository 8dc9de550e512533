"""Files that are dropped on a page."""

from pathlib import Path

from playwright.sync_api import Page


def drop(page: Page, *paths: Path) -> None:
    """Drop files from outside of the browser onto the zone, as the desktop does."""
    box = page.get_by_test_id("drop-here").bounding_box()
    assert box is not None
    session = page.context.new_cdp_session(page)
    transfer = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    where = {"x": box["x"] + 5, "y": box["y"] + 5, "data": transfer}
    for kind in ("dragEnter", "dragOver", "drop"):
        session.send("Input.dispatchDragEvent", {"type": kind, **where})
    session.detach()
