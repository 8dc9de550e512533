"""What takes space, and a rejected version that is checked again, on the pages of a whole platform."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser._support.uploads import drop
from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives
from tests.browser.whole.served import bring, linear_file
from tests.e2e.harness import Platform

pytestmark = [pytest.mark.browser, pytest.mark.e2e]

_LONG_AGO_S = 7200


@drives("GET storage", "POST storage-collect", "POST version-recheck")
def test_files_of_no_version_are_deleted_and_a_rejected_version_is_checked_again(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    bring(page, linear_file(tmp_path, linear_model()))
    left = platform.home / "artifacts" / ("0" * 64)
    left.mkdir()
    (left / "model.onnx").write_bytes(bytes(4096))
    os.utime(left, (time.time() - _LONG_AGO_S,) * 2)

    page.goto("/models/")
    page.get_by_role("link", name="Storage").click()
    expect(page.get_by_role("link", name="linear version 1")).to_be_visible()
    expect(page.get_by_text(f"sha256:{left.name}")).to_be_visible()
    desk.look(page, "storage")
    page.get_by_role("button", name="Delete 4.0 KiB now").click()
    expect(page.get_by_text("Deleted 1 artifact: 4.0 KiB.")).to_be_visible(timeout=WAIT_MS)
    assert not left.exists()

    broken = linear_file(tmp_path, linear_model(seed=2)[:-40], number=2)
    page.goto("/models/linear/")
    drop(page, broken)
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/linear/versions/2/")
    expect(page.get_by_text("REJECTED", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_text("PENDING", exact=True)).to_be_visible(timeout=WAIT_MS)
    expect(page.get_by_text("REJECTED", exact=True)).to_be_visible(timeout=WAIT_MS)
