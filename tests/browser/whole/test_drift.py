"""Drift of a service on its page: requests give features a shape, and a reference ends its learning early."""

from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform, serve_digits, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
POLICY = "name: quick\nsteps: [{weight: 100}]\n"
ROWS = 50


@drives("GET drift", "POST drift-accept")
def test_a_reference_is_learned_and_ends_early(desk: Desk, platform: Platform, models: Path) -> None:
    serve_digits(platform, models, POLICY)
    page = desk.page()
    platform.fairlead("feedback", "keep", "digits")
    page.goto("/services/default/digits/feedback/")
    page.get_by_test_id("to-drift").click()
    expect(page.get_by_test_id("no-features")).to_be_visible()
    images = np.load(models / "held-out.npz")["images"].astype(np.float32)
    address = f"http://{platform.gateway}/serving/default/digits/v2/models/digits/infer"
    sent = 0

    def features() -> dict[str, Any]:
        """Send a request of 50 rows; return the features by name."""
        nonlocal sent
        rows = images[np.arange(sent, sent + ROWS) % len(images)]
        tensor = {"name": "pixels", "datatype": "FP32", "shape": [ROWS, 64], "data": rows.ravel().tolist()}
        headers = {"x-request-id": f"request-{sent}"}
        httpx.post(address, json={"inputs": [tensor]}, headers=headers, trust_env=False).raise_for_status()
        sent += ROWS
        with closing(platform.client()) as client:
            found = client.get("services/default/digits/feedback/drift")["features"]
        return {each["name"]: each for each in found}

    def is_long_learned() -> bool:
        return any(each["state"] == "learning" and each["rows"] >= 500 for each in features().values())

    until(is_long_learned, 180, "a block of 500 rows")
    page.reload()
    page.get_by_role("button", name="End learning").first.click()
    expect(page.get_by_test_id("features")).to_contain_text("watched", timeout=WAIT_MS)
    desk.look(page, "drift")
