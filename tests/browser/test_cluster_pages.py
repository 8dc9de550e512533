"""The pages of clusters in a real browser: listed, shown, checked with what is missing; and what was changed there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from deployments.domain.service_state.drift import note, to_json
from deployments.models import InferenceService
from integrations.clusters.base import Drift
from tests import scenes
from tests.browser.axe import violations
from tests.deployments._support.cluster_files import KUBECONFIG, LEAST
from tests.servers.parts import free_port

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []


def cluster() -> Cluster:
    """Return a cluster whose API server is away, with its file applied."""
    kubeconfig: dict[str, Any] = {
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": f"https://127.0.0.1:{free_port()}"}}],
        "users": [{"name": "robot", "user": {"token": "secret-of-robot"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "robot"}}],
    }
    artifacts = {**LEAST["artifacts"], "root": "/artifacts"}
    document = {**LEAST, "artifacts": artifacts, "connection": {"kubeconfig": kubeconfig}}
    return cluster_apply(document=document, name=None, actor="alice", now=timezone.now())[0]


def service_on(there: Cluster) -> InferenceService:
    """Return a service that runs on the cluster, where somebody changed its Service by hand."""
    service = scenes.service()
    service.cluster = there
    drift = Drift("Service/digits-00001", "spec.type", '"ClusterIP"', '"NodePort"', "kubectl-edit", 0.0)
    service.drift = to_json(note((), [drift], timezone.now())[0])
    service.save()
    return service


def signed_in(context: BrowserContext, scope: Scope) -> Page:
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(scope, 'alice')}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    return page


def test_a_cluster_is_found_and_checked_and_what_is_missing_is_told(context: BrowserContext) -> None:
    service_on(cluster())
    page = signed_in(context, Scope.ADMIN)
    page.get_by_role("link", name="Platform").click()
    page.get_by_role("link", name="production").click()
    expect(page.get_by_role("heading", name="Cluster production")).to_be_visible()
    expect(page.get_by_text("https://models.example.com")).to_be_visible()
    expect(page.get_by_role("link", name="default/digits")).to_be_visible()
    assert "secret-of-robot" not in page.content()

    page.get_by_role("link", name="Check now").click()
    expect(page.get_by_role("heading", name="Something is missing")).to_be_visible()
    expect(page.locator("#check")).to_contain_text("does not answer")
    expect(page.get_by_role("heading", name="Cluster production")).to_be_visible()


def test_who_does_not_administer_sees_a_cluster_and_cannot_check_it(context: BrowserContext) -> None:
    cluster()
    page = signed_in(context, Scope.READ)
    page.goto("/platform/clusters/production/")
    expect(page.get_by_role("heading", name="Cluster production")).to_be_visible()
    expect(page.get_by_role("link", name="Check now")).to_have_count(0)


def test_what_was_changed_by_hand_stands_on_the_services_page(context: BrowserContext) -> None:
    service_on(cluster())
    page = signed_in(context, Scope.READ)
    page.goto("/services/default/digits/")
    card = page.locator("#service-drift")
    expect(card.get_by_role("heading", name="Drift")).to_be_visible()
    expect(card).to_contain_text("kubectl-edit")


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_of_a_cluster_is_wider_than_the_screen(
    context: BrowserContext, width: int, colours: Literal["light", "dark"]
) -> None:
    service_on(cluster())
    page = signed_in(context, Scope.ADMIN)
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)
    of_cluster = "/platform/clusters/production/"
    for path in ("/platform/", of_cluster, f"{of_cluster}check", "/services/default/digits/"):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_a_cluster_is_added_by_fields_changed_by_its_file_and_forgotten(context: BrowserContext) -> None:
    page = signed_in(context, Scope.ADMIN)
    page.goto("/platform/")
    page.get_by_role("link", name="Add a cluster").click()
    for label, value in (
        ("Name", "production"),
        ("Gateway URL", "https://models.example.com"),
        ("Gateway", "models"),
        ("Gateway namespace", "gateways"),
        ("Runtime image", "registry.example.com/serving-runtime@sha256:0"),
        ("Volume claim", "models"),
        ("Artifacts folder", "/artifacts"),
        ("Kubeconfig", KUBECONFIG.replace("https://127.0.0.1:9", f"https://127.0.0.1:{free_port()}")),
    ):
        page.get_by_label(label, exact=True).fill(value)
    text = page.get_by_role("textbox", name="The cluster file as YAML")
    expect(text).to_have_value(re.compile(r"root: /artifacts"))
    assert "secret-of-robot" not in text.input_value()
    text.fill(text.input_value() + "domain: models.example.com\n")
    text.fill(text.input_value().replace("name: models\n", "name: public\n"))
    expect(page.get_by_label("Gateway", exact=True)).to_have_value("public")
    assert "secret-of-robot" in page.get_by_label("Kubeconfig", exact=True).input_value()
    page.get_by_role("button", name="Preview and check").click()
    expect(page.get_by_role("heading", name="Something is missing")).to_be_visible()
    expect(page.locator("#cluster-plan ins").first).to_have_text("name: production")
    assert "secret-of-robot" not in page.locator("#cluster-plan").inner_text()
    page.get_by_role("button", name="Add cluster production all the same").click()
    expect(page.get_by_text("Cluster production is there now.")).to_be_visible()

    page.get_by_role("link", name="File", exact=True).click()
    text.fill(text.input_value().replace("domain: models.", "domain: other."))
    page.get_by_role("button", name="Preview and check").click()
    expect(page.locator("#cluster-plan ins")).to_have_text("domain: other.example.com")
    page.get_by_role("button", name="Apply it to production all the same").click()
    expect(page.get_by_text("Cluster production is changed now.")).to_be_visible()

    page.get_by_role("button", name="Forget…").click()
    page.get_by_role("dialog").get_by_role("button", name="Forget", exact=True).click()
    expect(page.get_by_text("Cluster production is forgotten; what runs on it was left alone.")).to_be_visible()


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_of_a_new_cluster_can_be_used_by_everybody(
    context: BrowserContext, screenshots: Path, width: int, colours: Literal["light", "dark"]
) -> None:
    page = signed_in(context, Scope.ADMIN)
    page.set_viewport_size({"width": width, "height": 844})
    page.emulate_media(color_scheme=colours)
    cluster()

    def look(name: str) -> None:
        page.screenshot(path=screenshots / f"cluster-{name}-{width}-{colours}.png", full_page=True)
        assert violations(page) == [], name
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name

    page.goto("/platform/clusters/new")
    look("new")
    page.goto("/platform/clusters/production/file")
    text = page.get_by_role("textbox", name="The cluster file as YAML")
    text.fill(text.input_value() + "domain: models.example.com\n")
    page.get_by_role("button", name="Preview and check").click()
    expect(page.locator("#cluster-plan ins")).to_have_text("domain: models.example.com")
    look("changed")
    page.goto("/platform/clusters/production/")
    look("detail")
