"""Answers are kept and scored on pages, with labels from the command line; behind them a real platform."""

import re
from collections.abc import Callable
from http.client import ACCEPTED
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from playwright.sync_api import expect

from tests.browser.whole.desk import WAIT_MS, Desk, ask
from tests.browser.whole.driven import drives
from tests.e2e.harness import Platform, serve_digits, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
POLICY = "name: quick\nsteps: [{weight: 100}]\n"
COUNT = 30


def sender(platform: Platform, images: Any) -> Callable[[str, int], None]:
    """Return what sends one image as a request with an id."""
    address = f"http://{platform.gateway}/serving/default/digits/v2/models/digits/infer"

    def send(request_id: str, number: int) -> None:
        tensor = {"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": images[number].tolist()}
        headers = {"x-request-id": request_id}
        httpx.post(address, json={"inputs": [tensor]}, headers=headers, trust_env=False).raise_for_status()

    return send


@drives("GET feedback", "POST feedback-keep", "POST scorer-set", "POST scorer-delete", "POST feedback-stop")
def test_answers_are_kept_labelled_and_scored(desk: Desk, platform: Platform, models: Path, tmp_path: Path) -> None:
    serve_digits(platform, models, POLICY)
    page = desk.page()
    page.goto("/services/default/digits/")
    page.get_by_role("link", name="Feedback").click()
    expect(page.get_by_test_id("feedback-steps")).to_be_visible()
    page.get_by_label("Keep inputs too").check()
    page.get_by_role("button", name="Keep answers").click()
    expect(page.get_by_test_id("kept-now")).to_contain_text("inputs, encrypted")
    page.get_by_label("Name").fill("right")
    page.get_by_label("Kind").select_option("topK")
    page.get_by_role("button", name="Add scorer").click()
    expect(page.locator("#notices")).to_contain_text("needs the option k")
    page.get_by_label("Kind").select_option("accuracy")
    page.get_by_role("button", name="Add scorer").click()
    expect(page.get_by_test_id("no-scores")).to_be_visible()

    held_out = np.load(models / "held-out.npz")
    send = sender(platform, held_out["images"].astype(np.float32))

    with platform.client() as client:

        def is_kept() -> bool:
            send("first", 0)
            return bool(client.get("services/default/digits/feedback")["answers"]["rows"])

        until(is_kept, 60, "the first kept answer")
    for number in range(COUNT):
        send(f"request-{number}", number)
    labels = [(int(label) + (number < 3)) % 10 for number, label in enumerate(held_out["labels"][:COUNT])]
    *rows, (last, label) = [(f"request-{number}", label) for number, label in enumerate(labels)]
    (tmp_path / "labels.csv").write_text("\n".join(["request_id,value", *(f"{name},{value}" for name, value in rows)]))
    platform.fairlead("feedback", "file", "digits", str(tmp_path / "labels.csv"))
    beside = f"http://{platform.gateway}/serving/default/digits/v2/models/digits/feedback"
    given = {"labels": [{"request_id": last, "value": label}]}
    assert httpx.post(beside, json=given, trust_env=False).status_code == ACCEPTED

    expect(page.get_by_test_id("coverage")).to_contain_text(re.compile(rf"Joined\s*{COUNT}"), timeout=WAIT_MS)
    page.reload()
    expect(page.locator("svg.quality circle").first).to_be_visible()
    worst = page.locator("#worst")
    expect(worst.get_by_role("img", name="Input pixels as a picture")).to_have_count(worst.locator("li").count())
    assert page.evaluate("[...document.querySelectorAll('#worst img')].every((each) => each.naturalWidth === 8)")
    expect(worst).to_contain_text("request-2")
    worst.get_by_text("Values").first.click()
    expect(worst.get_by_role("heading", name="Input pixels").first).to_be_visible()
    desk.look(page, "feedback")
    page.goto("/services/default/digits/")
    expect(page.get_by_test_id("right-answers")).to_contain_text("right")
    page.get_by_role("link", name="All feedback").click()

    ask(page, "Delete…", "Delete")
    expect(page.get_by_role("link", name="right", exact=True)).to_have_count(0)
    ask(page, "Stop…", "Stop")
    expect(page.get_by_test_id("kept-stopped")).to_be_visible()
