"""Requests of a key at a real gateway are on the page of usage, and in its file, also of a gateway that was killed;
a budget that is enforced there refuses the key until it is deleted."""

import csv
import json
import os
import signal
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import Desk
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: metered}
spec:
  access: public
  predictor:
    model: {modelFormat: {name: onnx}, storageUri: "models:/metered/1"}
"""
REQUESTS = 7


@drives("GET usage", "GET usage-export", "POST usage-budget")
def test_requests_of_a_key_are_on_the_page_and_in_its_file(
    desk: Desk, platform: Platform, models: Path, tmp_path: Path
) -> None:
    platform.fairlead("models", "push", str(models / "v1.onnx"), "--name", "metered", "--wait")
    (platform.home.parent / "metered.yaml").write_text(SERVICE)
    platform.fairlead("services", "apply", "-f", "metered.yaml", "--wait")
    made = platform.fairlead("keys", "create", "nightly-batch", "--service", "default/metered", "-o", "json")
    headers = {"Authorization": f"Bearer {json.loads(made.stdout)['token']}"}
    url = f"http://{platform.gateway}/serving/default/metered/v2/models/metered/infer"
    # The key is known to the gateway within seconds; a public service takes the request meanwhile.
    log = platform.home / "cluster" / "access-log"

    def logged() -> int:
        return sum(each.read_text().count('"nightly-batch"') for each in log.glob("*.log"))

    def is_known() -> bool:
        httpx.post(url, headers=headers, json={}, timeout=30)
        return logged() > 0

    until(is_known, within_s=60, what="the key at the gateway")
    counted = logged()
    for _ in range(REQUESTS):
        assert httpx.post(url, headers=headers, json={}, timeout=30).status_code == 400

    until(lambda: logged() >= counted + REQUESTS, what="the lines of the gateway")
    os.kill(platform.record("gateway")["pid"], signal.SIGKILL)
    sent = logged()

    def used() -> int:
        found = json.loads(
            platform.fairlead("usage", "--key", "nightly-batch", "--by", "key,revision", "-o", "json").stdout
        )
        return sum(line["errors"] for line in found["lines"] if line["revision"] == "metered-00001")

    until(lambda: used() >= sent, within_s=60, what="the usage")
    assert used() == sent

    page = desk.page()
    page.goto("/")
    page.get_by_role("link", name="Usage").click()
    row = page.get_by_role("row").filter(has_text="nightly-batch")
    expect(row).to_contain_text("default/metered")
    desk.look(page, "usage")
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    download.value.save_as(tmp_path / "usage.csv")
    with (tmp_path / "usage.csv").open(newline="") as file:
        rows = [each for each in csv.DictReader(file) if each["key"] == "nightly-batch"]
    assert [(each["team"], each["service"], each["requests"]) for each in rows] == [
        ("default", "default/metered", str(sent))
    ]

    page.get_by_label("Team", exact=True).select_option("default")
    page.get_by_role("button", name="Show").click()
    page.get_by_label("Most requests").fill("1")
    page.get_by_label("Refuse requests once it is used up").check()
    page.get_by_role("button", name="Set budget").click()
    expect(page.get_by_test_id("used-up")).to_be_visible()
    desk.look(page, "usage-quota")

    def status(**options: dict[str, str]) -> int:
        return httpx.post(url, json={}, timeout=30, **options).status_code

    until(lambda: status(headers=headers) == 429, within_s=60, what="the refusal of the key")
    assert status() == 400, "callers without a key go on"
    page.get_by_role("button", name="Delete budget").click()
    expect(page.get_by_test_id("no-budget")).to_be_visible()
    until(lambda: status(headers=headers) == 400, within_s=60, what="requests of the key")

    page.get_by_role("link", name="nightly-batch").click()
    page.get_by_label("Most requests").fill("1")
    page.get_by_label("Refuse requests once it is used up").check()
    page.get_by_role("button", name="Set budget").click()
    expect(page.get_by_test_id("used-up")).to_contain_text("nightly-batch")
    desk.look(page, "usage-quota-of-a-key")
    sent = platform.home / "cluster" / "keys.json"

    def refused() -> list[str]:
        return list(json.loads(sent.read_text()).get("exhausted_keys", []))

    until(lambda: refused() == ["nightly-batch"], within_s=60, what="the key at the agent")
    platform.fairlead("services", "budget", "metered", "--requests", "1", "--enforce")
    platform.fairlead("keys", "budget", "nightly-batch", "--no-enforce")
    until(lambda: refused() == [], within_s=60, what="the end of the quota")
    shown = json.loads(platform.fairlead("services", "budget", "metered", "-o", "json").stdout)
    assert (shown["enforce"], shown["used_up"]) == (True, True)
