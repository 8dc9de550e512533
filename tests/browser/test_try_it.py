"""A model from a drop on a page to an answer on a page; behind it a real server, worker, Envoy and runtimes."""

import base64
import json
import re
import struct
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import onnx
import pytest
from django.utils import timezone
from onnx import TensorProto, helper
from playwright.sync_api import Browser, Page, Route, expect

from deployments.models import Trial
from deployments.services.trials import TrialClaim, trial_begin, trial_end, trial_fail, trial_renew
from deployments.trying.trial import Tried
from registry.holding import LEASE
from registry.models import ModelVersion
from tests import scenes
from tests.browser.axe import violations
from tests.browser.test_upload import drop
from tests.e2e.harness import Platform

pytestmark = pytest.mark.browser
WAIT_MS = 120_000


COLOURS_CONFIG = """
max_batch_size: 8
input [{ name: "image" data_type: TYPE_FP32 dims: [3, 32, 24] }]
output [{ name: "colours" data_type: TYPE_FP32 dims: [3] label_filename: "labels.txt" }]
"""


def png(path: Path, width: int, height: int, rgb: tuple[int, int, int]) -> Path:
    """Write a picture of one colour."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    rows = zlib.compress((b"\0" + bytes(rgb) * width) * height)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b""))
    return path


def colours_model(path: Path) -> Path:
    """Write a folder's archive with a model that gives the mean of each colour of a picture, and labels for those."""
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["image"], ["colours"], axes=[2, 3], keepdims=0)],
        "colours",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 32, 24])],
        [helper.make_tensor_value_info("colours", TensorProto.FLOAT, ["batch", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1/model.onnx", model.SerializeToString())
        archive.writestr("config.pbtxt", COLOURS_CONFIG)
        archive.writestr("labels.txt", "red\ngreen\nblue\n")
    return path


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    """A running platform of its own, as `fairlead up` starts it."""
    made = Platform(tmp_path / "up" / ".fairlead")
    made.start()
    yield made
    assert made.process is not None
    if made.process.poll() is None:
        made.stop()


def code(page: Page, which: str) -> str:
    return page.locator(f"#code-{which}").inner_text()


def run(*command: str, folder: Path) -> str:
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.e2e
def test_a_model_is_dropped_deployed_and_asked_with_a_picture(
    browser: Browser, platform: Platform, tmp_path: Path, screenshots: Path
) -> None:
    context = browser.new_context(base_url=platform.url, viewport={"width": 1280, "height": 900})
    context.set_default_timeout(WAIT_MS)
    page = context.new_page()
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(f"/signin/#token={(platform.home / 'token').read_text().strip()}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))

    page.goto("/models/")
    drop(page, colours_model(tmp_path / "colours.zip"))
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/colours/versions/1/")
    expect(page.get_by_text("READY", exact=True)).to_be_visible(timeout=WAIT_MS)  # without a reload by hand
    page.get_by_role("link", name="Try it").click()
    expect(page.get_by_text("so a runtime is started for this one request")).to_be_visible()
    page.get_by_label("Picture for image").set_input_files(png(tmp_path / "blue.png", 60, 40, (0, 51, 255)))
    page.get_by_role("button", name="Try it").click()
    tried = page.locator("#try-outcome section").first
    expect(tried.get_by_text("By a run of the runtime for this request alone: loaded in")).to_be_visible(
        timeout=WAIT_MS
    )
    best = tried.locator(".scores tbody tr")
    assert [row.split()[:3] for row in best.all_inner_texts()] == [
        ["blue", "2", "1"],
        ["green", "1", "0.2"],
        ["red", "0", "0"],
    ]
    expect(tried.get_by_text(re.compile(r"^[\d.,]+ ms, the median of 5$"))).to_be_visible()
    page.wait_for_url("**/models/colours/versions/1/try/trials/1/")
    assert violations(page) == []
    page.screenshot(path=screenshots / "try-trial-answer.png", full_page=True)
    page.get_by_text("As numbers").click()
    page.get_by_role("button", name="Remove it").click()
    page.get_by_label("image as JSON").fill("[[[[1]], [[2]], [[3]]]]")
    page.get_by_role("button", name="Try it").click()
    expect(tried.get_by_text(re.compile("The runtime answered 400: .*image"))).to_be_visible(timeout=WAIT_MS)
    page.screenshot(path=screenshots / "try-trial-refused.png", full_page=True)
    page.get_by_role("link", name="Deploy it").click()
    page.get_by_role("button", name="Make the service").click()
    page.wait_for_url("**/services/default/colours/")
    expect(page.locator("#service-header").get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.get_by_role("link", name="Try it").click()

    page.get_by_label("Picture for image").set_input_files(png(tmp_path / "teal.png", 60, 40, (0, 102, 204)))
    expect(page.get_by_role("img", name="The picture as it is sent")).to_be_visible()
    page.get_by_role("button", name="Send it").focus()
    page.keyboard.press("Enter")
    answer = page.locator("#try-outcome section").first
    expect(answer.get_by_text("colours-00001")).to_be_visible(timeout=WAIT_MS)
    rows = answer.locator(".scores tbody tr")
    expect(rows).to_have_count(3)
    assert [row.split()[:3] for row in rows.all_inner_texts()] == [
        ["blue", "2", "0.8"],
        ["green", "1", "0.4"],
        ["red", "0", "0"],
    ]
    expect(answer.get_by_text(re.compile(r"^[\d.,]+ ms, by revision"))).to_be_visible()
    assert violations(page) == []
    page.screenshot(path=screenshots / "try-answer.png", full_page=True)

    with page.expect_download() as download:
        page.get_by_role("button", name="Download request.json").click()
    download.value.save_as(tmp_path / "request.json")
    assert "0.8" in run("bash", "-c", code(page, "curl"), folder=tmp_path)
    assert "0.8" in run(sys.executable, "-c", code(page, "python"), folder=tmp_path)
    assert "0.8" in run(sys.executable, "-c", code(page, "triton"), folder=tmp_path)

    page.get_by_label("Values", exact=True).select_option("0 to 255")
    page.get_by_role("button", name="Send it").click()
    expect(rows.first).to_contain_text("204")
    page.get_by_role("button", name="Remove it").click()
    page.get_by_text("As numbers").click()
    page.get_by_label("image as JSON").fill("[[[[1]], [[2]], [[3]]]]")
    page.get_by_role("button", name="Send it").click()
    expect(answer.get_by_text(re.compile("The service answered 400: .*image"))).to_be_visible()
    page.screenshot(path=screenshots / "try-refused.png", full_page=True)
    for which in ("curl", "python", "triton"):
        assert "[[[[1]], [[2]], [[3]]]]" in code(page, which)
    assert complaints == []
    context.close()


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

    def start() -> TrialClaim:
        page.get_by_role("button", name="Try it").click()
        expect(outcome.get_by_role("progressbar", name="Waiting for a worker")).to_be_visible()
        claim = trial_begin(trial_id=Trial.objects.latest("pk").pk, now=timezone.now(), lease=LEASE)
        assert claim is not None
        return claim

    page.goto("/models/digits/versions/2/try/")
    look("offered")
    claim = start()
    assert trial_renew(claim=claim, stage="loading the model", now=timezone.now(), lease=LEASE)
    expect(outcome.get_by_role("progressbar", name="Loading the model")).to_be_visible()
    look("loading")
    scores = {"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [0.1, 0.7, 0.2]}
    report = {"status": 200, "load_ms": 412.5, "first_ms": 2.25, "infer_ms": 0.31, "runs": 5}
    report["labels"] = {"scores": ["great white shark", "cat", "a label that is as long as those of some sets are"]}
    assert trial_end(claim=claim, tried=Tried(json.dumps({"outputs": [scores]}), report), now=timezone.now())
    expect(outcome.get_by_text("cat")).to_be_visible()
    expect(outcome.get_by_text("70.0")).to_be_visible()
    look("labels")
    page.reload()
    expect(outcome.get_by_text("cat")).to_be_visible()

    trial_fail(claim=start(), reason="the model needs more memory than there is", now=timezone.now())
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
    expect(page.get_by_text("is live in no service")).to_be_visible()
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
    expect(page.get_by_text("Waiting for the answer")).to_be_visible()
    look("busy")
    held[0].continue_()
    expect(page.get_by_text("Input row: that is not JSON")).to_be_visible()
    look("error")
    (tmp_path / "notes.txt").write_text("notes")
    page.get_by_label("Picture for image").set_input_files(tmp_path / "notes.txt")
    expect(page.get_by_text("is no picture that this browser can read")).to_be_visible()
    assert complaints == []
