"""The pages of models: descriptions that are safe, tags that a deployer changes, imports whose progress moves."""

import re
from collections.abc import Iterator

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope
from common.uris import parse_prefixes
from deployments.models import Rollout
from registry.models import ModelImport, ModelVersion, RegisteredModel
from registry.services import imports
from tests import scenes
from tests.browser.axe import violations

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []


def test_a_tag_is_set_and_removed_on_the_page_of_a_version(page: Page) -> None:
    scenes.model_version(1)
    page.get_by_role("link", name="Models", exact=True).click()
    page.get_by_role("link", name="digits").click()
    page.get_by_role("link", name="1", exact=True).click()
    page.get_by_label("Key").fill("stage")
    page.get_by_label("Value").fill("live")
    page.get_by_role("button", name="Set tag").click()
    page.get_by_role("button", name="Remove the tag stage").click()
    expect(page.get_by_text("No tags.")).to_be_visible()
    assert ModelVersion.objects.get().tags == {}


def test_a_description_is_edited_and_a_version_in_use_is_not_deleted(page: Page, complaints: list[str]) -> None:
    scenes.service()
    page.goto("/models/digits/versions/1/")
    page.get_by_text("Write the description").click()
    page.get_by_label("Description in Markdown").fill("Reads **digits**")
    assert violations(page) == []
    page.get_by_role("button", name="Save the description").click()
    expect(page.locator(".prose strong")).to_have_text("digits")

    page.goto("/models/digits/versions/1/")
    page.get_by_role("button", name="Delete…").click()
    question = page.get_by_role("dialog")
    expect(question).to_contain_text("Delete digits version 1?")
    question.get_by_role("button", name="Delete", exact=True).click()
    expect(page.locator("#notices")).to_contain_text("in use by service default/digits")
    expect(question).to_be_hidden()
    assert ModelVersion.objects.get().description == "Reads **digits**"
    assert all(re.match("Failed to load resource|Response Status Error", text) for text in complaints)
    complaints.clear()  # the browser's own words for the refusal


def test_the_list_narrows_while_one_types_and_the_address_says_so(page: Page) -> None:
    for name in ("digits", "fraud", "churn"):
        scenes.model_version(1, name)
    page.goto("/models/")
    page.get_by_label("Name or description").press_sequentially("frau")
    expect(page.get_by_role("link", name="digits")).to_have_count(0)
    expect(page).to_have_url(re.compile(r"[?&]search=frau(&|$)"))
    page.get_by_role("link", name="fraud").click()
    page.go_back()
    expect(page.get_by_label("Name or description")).to_have_value("frau")
    expect(page.get_by_role("link", name="digits")).to_have_count(0)
    page.get_by_label("Name or description").fill("nothing like that")
    page.get_by_role("link", name="show all models").click()
    expect(page.get_by_role("link", name="digits")).to_be_visible()


def test_versions_are_narrowed_by_what_was_decided_and_the_address_says_so(page: Page) -> None:
    for number in (1, 2, 3):
        scenes.model_version(number)
    ModelVersion.objects.filter(number=2).update(approval="approved", approval_at=timezone.now())
    page.goto("/models/digits/")
    rows = page.locator("#versions tbody tr")
    expect(rows).to_have_count(3)
    page.evaluate("window.stayed = true")
    page.get_by_label("Approval").select_option("approved")
    expect(rows).to_have_count(1)
    expect(page).to_have_url(re.compile(r"[?&]approval=approved(&|$)"))
    assert page.evaluate("window.stayed") is True

    page.get_by_role("link", name="2", exact=True).click()
    expect(page.get_by_role("heading", name="version 2")).to_be_visible()
    page.go_back()
    expect(rows).to_have_count(1)
    expect(page.get_by_label("Approval")).to_have_value("approved")
    page.get_by_label("Status").select_option("REJECTED")
    page.get_by_role("link", name="show all versions").click()
    expect(rows).to_have_count(3)


def test_a_version_is_compared_with_another_by_keyboard(page: Page) -> None:
    for number in (1, 2, 3):
        scenes.model_version(number)
    page.goto("/models/digits/versions/3/")
    page.get_by_label("Compare with").focus()
    page.get_by_label("Compare with").select_option("version 1")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Version 3 beside version 1")).to_be_visible()
    expect(page.get_by_text("send and read the same with version 3")).to_be_visible()
    page.get_by_role("link", name="The other way round").click()
    expect(page.get_by_role("heading", name="Version 1 beside version 3")).to_be_visible()


def test_a_version_is_deployed_after_a_look_at_the_plan(page: Page) -> None:
    scenes.service()
    scenes.model_version(2)
    page.goto("/models/digits/versions/2/")
    page.get_by_role("link", name="Deploy").click()
    page.get_by_label("Policy for default/digits").select_option("careful")
    page.get_by_role("button", name="See the plan for default/digits").click()
    expect(page.get_by_text("can begin")).to_be_visible()
    assert violations(page) == []
    page.get_by_role("button", name="Start the rollout in default/digits").click()
    page.wait_for_url("**/services/default/digits/rollouts/*/")
    rollout = Rollout.objects.get()
    assert (rollout.policy_name, rollout.to_revision.model_version.number) == ("careful", 2)


def test_what_is_wrong_with_a_new_service_is_said_where_it_is_typed(page: Page, complaints: list[str]) -> None:
    scenes.model_version(1)
    page.goto("/deploy/digits/1/")
    page.get_by_label("Name", exact=True).fill("Not A Name")
    page.get_by_role("button", name="Create service").click()
    expect(page.locator("#notices")).to_contain_text("Not A Name")
    assert all("400" in line for line in complaints)  # the browser tells of every refusal
    complaints.clear()
    page.get_by_label("Name", exact=True).fill("letters")
    page.get_by_role("button", name="Create service").click()
    page.wait_for_url("**/services/default/letters/")
    assert page.get_by_role("heading", name="letters").is_visible()


def test_a_description_that_tries_to_run_is_only_text(page: Page) -> None:
    scenes.model_version(1)
    text = (
        "<img src=x onerror=document.title='x'>\n\n[a](javascript:document.title='x')\n\n![p](https://h.example/p.png)"
    )
    RegisteredModel.objects.update(description=text)
    page.goto("/models/digits/")
    expect(page.locator(".prose").get_by_text("onerror")).to_be_visible()
    expect(page.get_by_role("link", name="p", exact=True)).to_be_visible()
    assert page.title() == "digits · Fairlead"
    assert page.locator(".prose img").count() == 0


def test_the_progress_of_an_import_moves_until_its_end(page: Page, settings: Settings) -> None:
    scenes.model_version(1)
    settings.IMPORT_FROM = parse_prefixes(["https://models.example"])
    now = timezone.now()
    imports.import_request(model="digits", uri="https://models.example/digits.onnx", now=now, actor="test")
    ModelImport.objects.update(bytes_done=40 << 20, bytes_total=120 << 20)
    page.goto("/models/digits/")
    expect(page.get_by_text("40.0 MiB of 120 MiB")).to_be_visible()
    ModelImport.objects.update(bytes_done=80 << 20)
    expect(page.get_by_text("80.0 MiB of 120 MiB")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_text("FAILED", exact=True)).to_be_visible()


def test_a_version_is_approved_with_a_comment_and_its_alias_protected(context: BrowserContext) -> None:
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(Scope.ADMIN)}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    scenes.model_version(1)
    page.goto("/models/digits/")
    page.get_by_role("textbox", name="Alias").fill("champion")
    page.get_by_role("button", name="Protect alias").click()
    expect(page.get_by_test_id("means-nothing")).to_be_visible()
    page.get_by_role("button", name="Require approval…").click()
    page.get_by_role("dialog").get_by_role("button", name="Require approval", exact=True).click()
    expect(page.get_by_test_id("approved-only")).to_be_visible()

    page.get_by_role("link", name="1", exact=True).click()
    expect(page.locator(".title-line")).to_contain_text("needs approval")
    page.get_by_role("button", name="Approve…").click()
    page.get_by_label("What you looked at").fill("its answers on ten pictures")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("its answers on ten pictures")).to_be_visible()
    expect(page.locator(".title-line")).to_contain_text("approved")
    assert ModelVersion.objects.get().approval == "approved"
    assert RegisteredModel.objects.get().protected_aliases == ["champion"]
