"""A service configured, looked into, restarted, stopped, resumed and deleted on its pages, while clients ask it.

What the pages say is held against the answers through Envoy and against the processes on this machine.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.whole.desk import WAIT_MS, Desk, ask, see
from tests.browser.whole.driven import drives
from tests.browser.whole.served import WAIT_S, answered_by, answering, ask_linear, bring, linear_file
from tests.e2e.harness import Platform, family, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
SERVICE = "/services/default/linear/"


def running(platform: Platform, revision: str = "linear") -> set[int]:
    """Return the processes of a revision's replicas, or of all."""
    said = [json.loads(record.read_text()) for record in (platform.home / "run").glob(f"default.{revision}-*.json")]
    return {each["pid"] for each in said} & family(platform.home).keys()


def apply(page: Page) -> None:
    """Apply the change that is shown, by the keyboard; return on the service's page."""
    page.get_by_role("button", name="Apply…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{SERVICE}")
    see(page, "Applied the file of default/linear.")


@drives(
    "GET replica-log",
    "GET service-config",
    "POST config-look",
    "POST config-apply",
    "POST service-action restart",
    "POST service-action stop",
    "POST service-action resume",
    "POST service-action delete",
)
def test_a_service_is_configured_restarted_stopped_resumed_and_deleted(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    bring(page, linear_file(tmp_path, linear_model()))
    page.get_by_role("link", name="Deploy", exact=True).click()
    page.get_by_role("button", name="Create service").click()
    page.wait_for_url(f"**{SERVICE}")
    header = page.locator("#service-header")
    expect(header.get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    answered_by(platform, "linear", "linear-00001")
    request = ask_linear(platform, "linear").headers["x-request-id"]
    page.locator("#log-linear-00001-0 summary").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#log-linear-00001-0 pre")).to_contain_text(request)
    desk.look(page, "replica-log")

    page.get_by_role("link", name="Configuration").click()
    page.get_by_label("Minimum replicas").fill("2")
    page.keyboard.press("Enter")
    expect(page.locator("#config-plan ins")).to_have_text("    minReplicas: 2")
    desk.look(page, "config-by-form")
    apply(page)
    expect(header).to_contain_text("linear-00002 serves all traffic with 2 replicas", timeout=WAIT_MS)
    expect(page.locator("#replicas")).to_contain_text("linear-00002-1")
    assert len(running(platform, "linear-00002")) == 2
    answered_by(platform, "linear", "linear-00002")

    page.get_by_role("link", name="Configuration").click()
    text = page.get_by_role("textbox", name="The service file as YAML")
    was = text.input_value()
    text.fill(was.replace("    model:\n", "    model:\n      config: {dynamic_batching: {max_quue: 1}}\n"))
    page.get_by_role("button", name="Preview file changes").click()
    expect(page.locator("#config-plan")).to_contain_text("spec.predictor.model.config.dynamic_batching.max_quue")
    text.fill(was.replace("    model:\n", "    model:\n      config: {max_batch_size: 128}\n"))
    page.get_by_role("button", name="Preview file changes").click()
    expect(page.locator("#config-plan")).to_contain_text("New revision linear-00003")
    desk.look(page, "config-as-file")
    apply(page)
    answered_by(platform, "linear", "linear-00003")
    expect(header).to_contain_text("linear-00003 serves all traffic with 2 replicas", timeout=WAIT_MS)

    before = running(platform, "linear-00003")
    ask(page, "Restart…", "Restart")
    see(page, "The replicas of default/linear are restarted, one after the other.")
    until(
        lambda: (
            answering(platform, "linear") == {"linear-00003"} and len(running(platform, "linear-00003") - before) == 2
        ),
        WAIT_S,
        "a restart of both replicas, every request answered meanwhile",
    )
    until(lambda: not running(platform) & before, WAIT_S, "the end of those before")
    expect(header.get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)

    page.get_by_role("button", name="Stop…").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    assert answering(platform, "linear") == {"linear-00003"}
    ask(page, "Stop…", "Stop")
    expect(header.get_by_text("Stopped", exact=True)).to_be_visible(timeout=WAIT_MS)
    until(lambda: ask_linear(platform, "linear").status_code == 503, WAIT_S, "503")
    until(lambda: not running(platform), WAIT_S, "the end of its processes")
    expect(page.locator("#replicas").get_by_test_id("service-stopped")).to_be_visible(timeout=WAIT_MS)
    desk.look(page, "service-stopped")
    ask(page, "Resume…", "Resume")
    expect(header.get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    answered_by(platform, "linear", "linear-00003")

    ask(page, "Delete…", "Delete")
    page.wait_for_url("**/services/")
    see(page, "default/linear is being drained")
    desk.look(page, "service-deleting")
    expect(page.locator("#services").get_by_test_id("no-services")).to_be_visible(timeout=WAIT_MS)  # by the stream
    until(lambda: not running(platform), WAIT_S, "the end of its processes")
    until(lambda: ask_linear(platform, "linear").status_code == 404, WAIT_S, "404")
