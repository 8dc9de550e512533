"""A model pool on its pages: the services in it, and the memory of the models that its replicas have loaded."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import WAIT_MS, Desk
from tests.browser.whole.driven import drives
from tests.browser.whole.served import ask_linear, bring, linear_file
from tests.e2e._support.services import apply
from tests.e2e.harness import Platform

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
MODEL = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/linear/1"}


@drives("GET pool-list", "GET pool-detail")
def test_a_pool_shows_the_models_that_it_has_in_memory(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    bring(page, linear_file(tmp_path, linear_model()))
    apply(platform, "warm", "--wait", predictor={"modelPool": {"memoryBudget": "256Mi"}})
    apply(platform, "linear", "--wait", predictor={"pool": "warm", "model": MODEL})
    assert ask_linear(platform, "linear").status_code == 200

    page.goto("/services/")
    page.get_by_role("link", name="Model pools").click()
    page.get_by_role("link", name="default/warm").click()
    expect(page.get_by_test_id("models")).to_contain_text("default/linear")
    expect(page.get_by_test_id("hits")).to_contain_text("%")
    expect(page.locator("#pool")).to_contain_text("warm-00001-0")
    desk.look(page, "model-pool")
    page.get_by_role("link", name="default/linear").first.click()
    expect(page.get_by_test_id("in-pool")).to_have_text("default/warm", timeout=WAIT_MS)
