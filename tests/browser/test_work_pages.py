"""Builds and tunings on their pages, from the form to what came of it."""

import re
from pathlib import Path
from typing import Any, Literal

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from model_jobs.models import Build, Tuning
from tests import scenes
from tests.browser.axe import violations
from tests.deployments._support.tuning_points import BEST, FAST, NOW, point
from tests.deployments._support.tuning_reports import REPORT

pytestmark = pytest.mark.browser
VERSION = "/models/digits/versions/1/"


def test_a_build_is_seen_to_go_on_and_is_stopped(page: Page, complaints: list[str]) -> None:
    scenes.model_version(1)
    page.goto(VERSION)
    page.get_by_role("link", name="Build…").click()
    page.get_by_role("button", name="Start build").click()
    expect(page.get_by_text("It waits for its turn")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    Build.objects.update(claim="0" * 32, progress={"stage": "calibrating: 3 of 64 rows"})
    expect(page.get_by_text("Calibrating: 3 of 64 rows.")).to_be_visible()
    page.get_by_role("button", name="Stop…").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    expect(
        page.get_by_text("Build 1 is stopped.").or_(page.get_by_text(re.compile("Build .* is stopped")))
    ).to_be_visible()
    expect(page.get_by_text("Somebody stopped it.")).to_be_visible()
    assert complaints == []


def test_a_tuning_brings_its_result_and_the_way_to_use_it(page: Page, complaints: list[str]) -> None:
    scenes.service()
    page.goto(f"{VERSION}tunings/")
    page.get_by_label("Longest latency, ms").fill("10")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Tuning for a p99 of 10 ms")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    row = Tuning.objects.get()
    row.progress, row.claim = {"spent": 0.4, "measurements": 7, "last": FAST, "best": BEST}, "0" * 32
    row.save()
    expect(page.get_by_role("progressbar", name="Time spent")).to_have_attribute("value", "40")
    row.status, row.finished_at, row.next_try_at, row.report = "DONE", timezone.now(), None, REPORT
    row.save()
    expect(page.get_by_role("heading", name="Results")).to_be_visible()
    page.get_by_role("button", name="See what would change").click()
    expect(page.locator("#config-plan ins").first).to_be_visible()
    page.get_by_role("button", name="Apply…").click()
    page.get_by_role("dialog").get_by_role("button", name="Apply", exact=True).click()
    page.wait_for_url("**/services/default/digits/")
    expect(page.get_by_text("Applied the file of default/digits.")).to_be_visible()
    assert complaints == []


def _ended(row: Build | Tuning, **fields: Any) -> None:
    values = {"finished_at": timezone.now(), "next_try_at": None, **fields}
    type(row)._default_manager.filter(pk=row.pk).update(**values)


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_pages_fit_and_can_be_used_by_everybody(
    page: Page, complaints: list[str], screenshots: Path, width: int, colours: Literal["light", "dark"]
) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)
    scenes.service()
    going, failed, done = (scenes.build() for _ in range(3))
    Build.objects.filter(pk=going.pk).update(claim="0" * 32, progress={"stage": "calibrating: 3 of 64 rows"})
    _ended(failed, status="FAILED", reason="int8 needs typical rows: give calibration.npz beside config.pbtxt")
    _ended(done, status="DONE", version=scenes.model_version(2), report={"made": {"onnxruntime": "1.31.0"}})
    search, found = scenes.tuning(), scenes.tuning()
    progress = {"spent": 0.4, "measurements": 7, "last": FAST, "best": BEST}
    Tuning.objects.filter(pk=search.pk).update(claim="0" * 32, progress=progress)
    more = [point(0.5 + each / 3, 80 * each, instances=each, concurrency=2 * each) for each in range(1, 20)]
    _ended(found, status="DONE", report={**REPORT, "points": [*REPORT["points"], *more, NOW]})

    def look(name: str) -> None:
        page.screenshot(path=screenshots / f"work-{name}-{width}-{colours}.png", full_page=True)
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name

    page.goto(VERSION)
    page.get_by_role("button", name="Set an alias…").click()
    page.get_by_label("Alias", exact=True).fill("champion")
    page.keyboard.press("Enter")
    expect(page.get_by_text("The alias champion now points at version 1.")).to_be_visible()
    look("version")
    page.goto(f"{VERSION}builds/")
    look("builds")
    page.get_by_label("What", exact=True).select_option("plan")
    look("plan")
    for name, row in (("going", going), ("failed", failed), ("done", done)):
        page.goto(f"{VERSION}builds/{row.pk}/")
        look(f"build-{name}")
    page.goto(f"{VERSION}tunings/")
    page.get_by_test_id("limits").click()
    look("tunings")
    page.goto(f"{VERSION}tunings/{search.pk}/")
    look("tuning-going")
    page.goto(f"{VERSION}tunings/{found.pk}/")
    look("tuning-found")
    page.goto("/")
    look("home")
    assert complaints == []
