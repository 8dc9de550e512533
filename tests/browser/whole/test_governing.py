"""Models on their pages: brought, described, tagged, ruled, approved, followed by a service, compared, taken away."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from tests.browser.whole.desk import WAIT_MS, Desk, ask
from tests.browser.whole.driven import drives
from tests.browser.whole.served import ask_linear, bring, linear_file
from tests.e2e._support.platforms import started
from tests.e2e.half_sent import HalfSent, half_sent
from tests.e2e.harness import Platform, until

pytestmark = [pytest.mark.browser, pytest.mark.e2e]
FOLLOWER = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: linear}
spec:
  predictor: {model: {modelFormat: {name: onnx}, storageUri: "models:/linear@champion"}}
  rollout: {policy: at-once}
"""


@pytest.fixture(scope="module")
def place() -> Iterator[HalfSent]:
    with half_sent(b"half of a model, and the other half") as place:
        yield place


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory, place: HalfSent) -> Iterator[Platform]:
    """A platform that may import models from the place."""
    variables = {"FAIRLEAD_IMPORT_FROM": place.url, "NO_PROXY": "127.0.0.1"}
    with started(tmp_path_factory.mktemp("governing"), **variables) as made:
        yield made


def is_by(platform: Platform, seed: int) -> bool:
    """Return whether the model with these weights answers."""
    weights = np.random.default_rng(seed).normal(size=(4, 3)).astype(np.float32)
    said = ask_linear(platform, "linear")
    wanted = np.array([1, 2, 3, 4]) @ weights
    return said.status_code == 200 and bool(np.allclose(said.json()["outputs"][0]["data"], wanted, rtol=1e-4))


def describe_and_tag(page: Page, text: str, key: str, value: str) -> None:
    page.get_by_text("Write the description").click()
    page.get_by_label("Description in Markdown").fill(text)
    page.get_by_role("button", name="Save the description").click()
    expect(page.locator(".prose")).to_have_text(text.replace("*", ""))
    page.get_by_label("Key").fill(key)
    page.get_by_label("Value").fill(value)
    page.get_by_role("button", name="Set tag").click()
    expect(page.get_by_role("button", name=f"Remove the tag {key}")).to_be_visible()


def point_alias(page: Page) -> None:
    page.get_by_role("button", name="Set an alias…").click()
    page.get_by_role("dialog").get_by_label("Alias", exact=True).fill("champion")
    page.keyboard.press("Enter")


@drives(
    "GET model-detail", "POST model-describe", "POST model-tag", "POST model-protect", "POST model-approval",
    "POST version-alias", "POST version-approval", "POST version-describe", "POST version-tag", "GET model-compare",
    "GET version-compare", "POST version-delete",
)  # fmt: skip
def test_a_model_is_ruled_and_its_service_follows_what_was_approved(
    desk: Desk, platform: Platform, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    page = desk.page()
    first, better, worse = (linear_file(tmp_path, linear_model(seed=number - 1), number) for number in (1, 2, 3))
    bring(page, first)
    point_alias(page)
    expect(page.get_by_text("The alias champion now points at version 1.")).to_be_visible()
    (tmp_path / "policy.yaml").write_text("name: at-once\nsteps: [{weight: 100}]\n")
    (tmp_path / "service.yaml").write_text(FOLLOWER)
    platform.fairlead("policies", "apply", "-f", str(tmp_path / "policy.yaml"))
    platform.fairlead("services", "apply", "-f", str(tmp_path / "service.yaml"), "--wait")
    until(lambda: is_by(platform, 0), what="answers of version 1")

    page.get_by_label("Breadcrumb").get_by_role("link", name="linear").click()
    describe_and_tag(page, "Multiplies a row by a **matrix**.", "domain", "algebra")
    expect(page.locator(".prose strong")).to_have_text("matrix")
    page.get_by_role("textbox", name="Alias").fill("champion")
    page.get_by_role("button", name="Protect alias").click()
    expect(page.get_by_text("points at version 1", exact=True)).to_be_visible()
    ask(page, "Require approval…", "Require approval")
    expect(page.get_by_test_id("approved-only")).to_be_visible()
    desk.look(page, "model-ruled")

    bring(page, better, 2)
    expect(page.locator(".title-line")).to_contain_text("needs approval")
    describe_and_tag(page, "Trained on more rows.", "rows", "4096")
    page.get_by_role("button", name="Remove the tag rows").click()
    expect(page.locator("section", has=page.get_by_role("heading", name="Tags"))).to_contain_text("No tags.")
    point_alias(page)
    expect(page.get_by_text("The alias champion now points at version 2.")).to_be_visible()
    page.goto("/services/default/linear/")
    expect(page.locator("main")).to_contain_text("linear version 2 is not approved", timeout=WAIT_MS)
    desk.look(page, "service-waits-for-approval")
    assert is_by(platform, 0)

    other = desk.page(platform.token_of("grace"))
    other.goto("/models/linear/versions/2/")
    expect(other.get_by_test_id("admins-move")).to_be_visible()
    ask(other, "Approve…", "Approve", {"What you looked at": "its answers on four rows"})
    expect(other.get_by_text("its answers on four rows")).to_be_visible()
    desk.look(other, "version-approved")
    header = page.locator("#service-header")
    expect(header.get_by_role("link", name="linear version 2")).to_be_visible(timeout=WAIT_MS)  # without a reload
    expect(header.get_by_text("Ready", exact=True)).to_be_visible(timeout=WAIT_MS)
    until(lambda: is_by(platform, 1), what="answers of version 2")

    page.goto("/models/linear/")
    page.get_by_role("link", name="Compare two").click()
    page.get_by_label("Version", exact=True).select_option("1")
    page.get_by_label("Compared with").select_option("2")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_test_id("same-for-clients")).to_be_visible()
    bring(page, worse, 3)
    ask(page, "Decline…", "Decline", {"Why": "its weights are those of a trial"})
    expect(page.get_by_text("its weights are those of a trial")).to_be_visible()
    ask(page, "Delete…", "Delete")
    page.wait_for_url("**/models/linear/")
    expect(page.get_by_role("link", name="3", exact=True)).to_have_count(0)
    page.get_by_role("link", name="2", exact=True).click()
    for button, said in (
        ("#delete", "has the alias champion"),
        ("#alias-1", "The alias champion is deleted."),
        ("#delete", "default/linear"),  # serves it
    ):
        page.locator(button).click()
        page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        expect(page.locator("#notices")).to_contain_text(said)
    assert is_by(platform, 1)


@drives("POST import-start", "POST import-stop", "POST model-delete", "POST model-forget-rules", "POST signout")
def test_an_import_is_stopped_and_its_model_taken_away(desk: Desk, platform: Platform, place: HalfSent) -> None:
    page = desk.page()
    page.goto("/models/")
    page.get_by_test_id("import").click()
    page.get_by_label("Name of the imported model").fill("coming")
    page.get_by_label("Address").fill("https://elsewhere.example/model.onnx")
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("which FAIRLEAD_IMPORT_FROM does not allow")
    page.get_by_label("Address").fill(f"{place.url}/model.onnx")
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/models/coming/")
    expect(page.get_by_test_id("first-is-coming")).to_be_visible()
    page.goto("/models/")
    coming = page.locator("section", has=page.get_by_test_id("imports-in-progress"))
    desk.look(page, "models-coming")
    coming.get_by_role("link", name="coming").click()
    until(lambda: place.asked == ["/model.onnx"], what="the worker's request")
    imports = page.locator("#imports")
    expect(imports.get_by_text("PENDING", exact=True)).to_be_visible()
    imports.get_by_role("button", name="Stop").click()
    expect(imports.get_by_text("FAILED", exact=True)).to_be_visible()
    expect(page.get_by_test_id("none-came-in")).to_be_visible()
    desk.look(page, "model-none-came")
    expect(imports).to_contain_text("stopped")
    page.get_by_role("link", name="page of models").click()
    page.get_by_test_id("import").click()
    page.get_by_label("Name of the imported model").fill("fetched")
    page.get_by_label("Address").fill(f"{place.url}/fetched.onnx")
    place.go_on.set()
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/models/fetched/")
    page.get_by_role("link", name="version 1").click()  # comes without a reload by hand
    expect(page.get_by_text("REJECTED", exact=True)).to_be_visible(timeout=WAIT_MS)
    page.get_by_label("Breadcrumb").get_by_role("link", name="fetched").click()
    until(lambda: list((platform.home / "artifacts" / ".incoming").glob("import-*")) == [], what="an empty folder")
    ask(page, "Require approval…", "Require approval")
    expect(page.get_by_test_id("approved-only")).to_be_visible()
    ask(page, "Delete…", "Delete")
    page.wait_for_url("**/models/")
    kept = page.locator("#kept-rules")
    expect(kept.get_by_text("requires approval of its versions")).to_be_visible()
    desk.look(page, "models-kept-rules")
    ask(page, "Remove…", "Remove")
    expect(kept).to_have_count(0)
    expect(page.get_by_role("link", name="fetched")).to_have_count(0)
    page.get_by_role("button", name="Sign out").click()
    page.goto("/models/")
    expect(page).to_have_url(re.compile("/signin/"))
