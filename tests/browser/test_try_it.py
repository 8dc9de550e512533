"""A version is tried on its page: the form, the trial and its end, for everybody."""

import base64
import json
from pathlib import Path
from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from integrations.clusters.base import Job
from jobs.services.claim import begin, end, fail, renew
from jobs.services.claim_renewal import LEASE
from jobs.services.kinds import JobClaim
from model_jobs.models import Trial
from model_jobs.trials.domain.order import Tried
from model_jobs.trials.services import TRIAL
from registry.models import ModelVersion
from tests import scenes
from tests.browser._support.images import png
from tests.browser.axe import violations

pytestmark = pytest.mark.browser
WAIT_MS = 120_000


PICTURES = {
    "inputs": [
        {"name": "image", "datatype": "FP32", "shape": [-1, 3, 224, 224]},
        {"name": "a_long_name_of_an_input_that_tells_all", "datatype": "BYTES", "shape": [-1, 2], "optional": True},
        {"name": "row", "datatype": "INT64", "shape": [-1, 40]},
    ],
    "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_trial_is_followed_to_its_end(
    page: Page, complaints: list[str], screenshots: Path, theme: Literal["light", "dark"], width: int
) -> None:
    scenes.service()
    scenes.model_version(2)
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})
    outcome = page.locator("#try-outcome section").first

    def look(state: str) -> None:
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=screenshots / f"trial-{state}-{width}-{theme}.png", full_page=True)

    def start() -> JobClaim[Trial, Job]:
        page.get_by_role("button", name="Try it").click()
        expect(outcome.get_by_role("progressbar", name="Waiting for a worker")).to_be_visible()
        claim = begin(TRIAL, Trial.objects.latest("pk").pk, now=timezone.now(), lease=LEASE)
        assert claim is not None
        return claim

    page.goto("/models/digits/versions/2/try/")
    look("offered")
    claim = start()
    assert renew(TRIAL, claim, progress={"stage": "loading the model"}, now=timezone.now(), lease=LEASE)
    expect(outcome.get_by_role("progressbar", name="Loading the model")).to_be_visible()
    look("loading")
    scores = {"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [0.1, 0.7, 0.2]}
    report = {"status": 200, "load_ms": 412.5, "first_ms": 2.25, "infer_ms": 0.31, "runs": 5}
    report["labels"] = {"scores": ["great white shark", "cat", "a label that is as long as those of some sets are"]}
    assert end(TRIAL, claim, Tried(json.dumps({"outputs": [scores]}), report), now=timezone.now())
    expect(outcome.get_by_text("cat")).to_be_visible()
    expect(outcome.get_by_text("70.0")).to_be_visible()
    look("labels")
    page.reload()
    expect(outcome.get_by_text("cat")).to_be_visible()

    fail(TRIAL, start(), reason="the model needs more memory than there is", now=timezone.now())
    expect(outcome.get_by_text("The version was not tried: the model needs more memory")).to_be_visible()
    look("failed")
    start()
    page.get_by_role("button", name="Stop it").click()
    expect(outcome.get_by_text("The version was not tried: somebody stopped it")).to_be_visible()
    assert complaints == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_form_holds_for_everybody(
    page: Page,
    complaints: list[str],
    tmp_path: Path,
    screenshots: Path,
    theme: Literal["light", "dark"],
    width: int,
) -> None:
    scenes.service()
    scenes.model_version(2)
    ModelVersion.objects.update(signature=PICTURES)
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})

    def look(state: str) -> None:
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=screenshots / f"try-{state}-{width}-{theme}.png", full_page=True)

    page.goto("/models/digits/versions/2/try/")
    expect(page.get_by_test_id("not-live")).to_be_visible()
    look("nowhere")
    page.goto("/models/digits/versions/1/try/")
    look("empty")
    page.get_by_label("Picture for image").set_input_files(png(tmp_path / "red.png", 300, 200, (255, 0, 0)))
    expect(page.get_by_role("img", name="The picture as it is sent")).to_be_visible()
    pixels = base64.b64decode(page.locator("[name=pixels-0]").input_value())
    assert pixels == bytes((255, 0, 0)) * 224 * 224
    look("picture")
    page.get_by_label("Cut").select_option("whole, with a border")
    pixels = base64.b64decode(page.locator("[name=pixels-0]").input_value())
    assert pixels[:3] == b"\xff\xff\xff"
    page.get_by_label("row as JSON").fill("[1, 2")
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/try/send", hold)
    page.get_by_role("button", name="Send it").click()
    expect(page.get_by_test_id("try-busy")).to_be_visible()
    look("busy")
    held[0].continue_()
    expect(page.get_by_text("Input row: that is not JSON")).to_be_visible()
    look("error")
    (tmp_path / "notes.txt").write_text("notes")
    page.get_by_label("Picture for image").set_input_files(tmp_path / "notes.txt")
    expect(page.get_by_text("is no picture that this browser can read")).to_be_visible()
    assert complaints == []
