"""A model is dropped on the pages or chosen by keyboard, sent with progress, and followed until it is READY."""

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope
from integrations.artifacts.store import digest_of
from registry.models import ModelVersion, RegisteredModel
from registry.tasks import check_version
from tests import scenes
from tests.browser._support.uploads import drop
from tests.browser.axe import violations

pytestmark = pytest.mark.browser
MIB = 1 << 20


@pytest.fixture
def files(tmp_path: Path, linear_model: Callable[..., bytes], store_folder: Path) -> Path:
    """Return a folder with a model's file, and with a model's folder in Triton's layout."""
    (tmp_path / "linear.onnx").write_bytes(linear_model())
    folder = tmp_path / "scorer"
    (folder / "1").mkdir(parents=True)
    (folder / "1/model.onnx").write_bytes(linear_model(seed=1))
    (folder / "config.pbtxt").write_text('backend: "onnxruntime"\nmax_batch_size: 8\n')
    (folder / ("a-very-long-name-of-labels-" * 5 + "für-alle.txt")).write_text("one\ntwo\n")
    (folder / ".DS_Store").write_bytes(b"left by a desktop")
    return tmp_path


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []


def slow_uploads(page: Page, bytes_per_s: int) -> None:
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")
    conditions = {"offline": False, "latency": 0, "downloadThroughput": -1, "uploadThroughput": bytes_per_s}
    session.send("Network.emulateNetworkConditions", conditions)


def test_a_dropped_file_becomes_a_new_model_and_is_followed_until_it_is_ready(page: Page, files: Path) -> None:
    page.goto("/models/")
    drop(page, files / "linear.onnx")
    expect(page.get_by_label("Name of the model")).to_have_value("linear")
    expect(page.get_by_label("Name of the model")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/linear/versions/1/")
    expect(page.get_by_test_id("waits-for-worker")).to_be_visible()
    version = ModelVersion.objects.get()
    sha256 = hashlib.sha256((files / "linear.onnx").read_bytes()).hexdigest()
    assert version.digest == digest_of({"model.onnx": sha256})
    assert (version.source_name, version.created_by) == ("linear.onnx", "tester (token tester)")
    expect(page.get_by_text(version.digest)).to_be_visible()
    check_version(version.pk)
    expect(page.get_by_text("READY", exact=True)).to_be_visible()
    expect(page.get_by_text("FP32 [-1, 4]")).to_be_visible()


def test_a_dropped_folder_becomes_the_next_version_as_it_is_laid_out(
    page: Page, files: Path, store_folder: Path
) -> None:
    scenes.model_version(1, "scorer")
    RegisteredModel.objects.update(latest_number=1)
    page.goto("/models/scorer/")
    drop(page, files / "scorer")
    expect(page.get_by_text("3 files")).to_be_visible()
    expect(page.get_by_text("scorer/1/model.onnx")).to_be_visible()
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/scorer/versions/2/")
    version = ModelVersion.objects.get(number=2)
    kept = {path.relative_to(files / "scorer").as_posix(): path for path in (files / "scorer").rglob("*")}
    wanted = {name: path.read_bytes() for name, path in kept.items() if path.is_file() and name != ".DS_Store"}
    place = store_folder / version.digest.removeprefix("sha256:")
    assert {name: (place / name).read_bytes() for name in wanted} == wanted
    assert version.digest == digest_of({name: hashlib.sha256(each).hexdigest() for name, each in wanted.items()})


def test_several_files_are_chosen_and_sent_by_keyboard(page: Page, files: Path) -> None:
    page.on("filechooser", lambda _: None)  # from here on the browser asks us and nobody else, also where it is slow to
    page.goto("/models/")
    expect(page.get_by_test_id("no-models")).to_be_visible()
    page.get_by_label("Choose files").focus()
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files([files / "linear.onnx", files / "scorer/config.pbtxt"])
    expect(page.get_by_label("Name of the model")).to_be_focused()
    page.keyboard.type("letters")
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/letters/versions/1/")
    assert ModelVersion.objects.get().source_name == "letters.tar"


def test_an_upload_shows_how_it_goes_and_can_be_cancelled(
    page: Page, files: Path, store_folder: Path, screenshots: Path
) -> None:
    large = files / "large.onnx"
    large.write_bytes(bytes(range(256)) * (24 * MIB // 256))
    page.goto("/models/")
    slow_uploads(page, 2 * MIB)
    drop(page, large)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("Uploading large.onnx")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^[1-9]\d? %$"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"^[\d.]+ MiB of 24\.0 MiB$"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"[KM]iB/s, \d+ s left"))).to_be_visible()
    expect(page.get_by_text(hashlib.sha256(large.read_bytes()).hexdigest())).to_be_visible()
    assert violations(page) == []
    page.screenshot(path=screenshots / "upload-busy.png", full_page=True)
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Cancelled; nothing was registered.")
    assert not ModelVersion.objects.exists()
    expect(page.get_by_role("button", name="Upload", exact=True)).to_be_focused()


@pytest.mark.parametrize(
    ("model", "names", "told"),
    [
        pytest.param("digits", ["linear.onnx"], "is there already", id="a name that is taken"),
        pytest.param("no/name", ["linear.onnx"], "with a letter or digit first", id="no name"),
        pytest.param("letters", ["scorer/config.pbtxt"], "is not a model file", id="no model file"),
        pytest.param("letters", ["scorer/config.pbtxt", "notes.txt"], "lay it out as Triton does", id="wrong layout"),
        pytest.param("letters", ["huge.onnx"], "at most 1048576 are taken", id="too large"),
    ],
)
def test_what_cannot_be_a_version_is_refused_before_a_byte_is_sent(
    page: Page, files: Path, settings: Settings, complaints: list[str], model: str, names: list[str], told: str
) -> None:
    settings.MAX_ARTIFACT_BYTES = MIB
    scenes.model_version(1)
    (files / "notes.txt").write_text("notes")
    (files / "huge.onnx").write_bytes(bytes(MIB + 1))
    uploads: list[str] = []
    page.on("request", lambda request: "filename=" in request.url and uploads.append(request.url))
    page.goto("/models/")
    drop(page, *(files / name for name in names))
    page.get_by_label("Name of the model").fill(model)
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text(told)
    assert uploads == []
    assert all("status of 4" in line for line in complaints)  # the browser tells of every refusal
    complaints.clear()


def test_the_same_files_again_lead_to_their_version(page: Page, files: Path) -> None:
    page.goto("/models/")
    drop(page, files / "linear.onnx")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/linear/versions/1/")
    page.goto("/models/linear/")
    drop(page, files / "linear.onnx")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("These files are version 1 already; nothing new was registered.")
    page.get_by_role("link", name="version 1", exact=True).click()
    page.wait_for_url("**/models/linear/versions/1/")
    assert ModelVersion.objects.count() == 1


def test_a_connection_that_breaks_is_told_and_the_files_are_still_there(
    page: Page, files: Path, complaints: list[str]
) -> None:
    page.goto("/models/")
    page.route("**/versions?filename=*", lambda route: route.abort("connectionreset"))
    drop(page, files / "linear.onnx")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("The connection broke after")
    complaints.clear()
    page.unroute("**/versions?filename=*")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/linear/versions/1/")


def test_who_may_only_read_is_offered_no_upload(page: Page, files: Path) -> None:
    scenes.model_version(1)
    page.goto("about:blank")  # else answers to the page before could set cookies again
    page.context.clear_cookies()
    page.goto(f"/signin/#token={scenes.token(Scope.READ)}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    for address in ("/models/", "/models/digits/"):
        page.goto(address)
        expect(page.get_by_role("link", name="digits").or_(page.get_by_role("heading", name="digits"))).to_be_visible()
        expect(page.get_by_test_id("drop-here")).to_have_count(0)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_zone_holds_for_everybody(
    page: Page, files: Path, screenshots: Path, complaints: list[str], theme: Literal["light", "dark"], width: int
) -> None:
    page.emulate_media(color_scheme=theme)
    page.set_viewport_size({"width": width, "height": 900})

    def look(state: str) -> None:
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.screenshot(path=screenshots / f"upload-{state}-{width}-{theme}.png", full_page=True)

    page.goto("/models/")
    look("empty")
    drop(page, files / "scorer")
    expect(page.get_by_text("3 files")).to_be_visible()
    look("ready")
    page.get_by_label("Name of the model").fill("no name")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("with a letter or digit first")
    look("error")
    complaints.clear()
    page.get_by_label("Name of the model").fill("scorer")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url("**/models/scorer/versions/1/")
    look("checking")
    page.goto("/models/scorer/")
    look("next")
