"""The page of a cluster's GPUs as people see and use it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page, expect
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from deployments.services.revisions.gpu_assignment import gpus_note
from gpus.models import Repartition
from gpus.services import inventory
from gpus.services.repartitions import repartition_abort
from integrations.clusters.base import GpuPod, NodeGpus, Nodes
from tests import scenes
from tests.browser.axe import violations
from tests.browser.states.of_platform import FOUR, LARGE, MIXED, SINGLE, SMALL, UNCUT
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.fakes import FakeCluster

pytestmark = pytest.mark.browser

TWO = replace(scenes.GPU_NODE, count=2, resources={SMALL: 14})
ADDRESS = "/platform/clusters/local/gpus"


@pytest.fixture(autouse=True)
def _no_complaints(complaints: list[str]) -> Iterator[None]:
    yield
    assert complaints == []


def see(*nodes: NodeGpus, unknown: str = "") -> None:
    gpus_note(cluster_id=Cluster.objects.get().pk, nodes=Nodes(gpus=nodes, unknown=unknown), now=timezone.now())


@pytest.fixture
def page(context: BrowserContext, settings: Settings, tmp_path: Path) -> Page:
    """Give an administrator's page of an installation with one service, whose cluster does not answer."""
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    scenes.service()
    page = context.new_page()
    page.goto(f"/signin/#token={scenes.token(Scope.ADMIN)}")
    page.wait_for_url(re.compile(r"://[^/]+/$"))
    return page


def test_it_is_reached_from_the_cluster_and_leads_to_what_runs_on_a_slice(page: Page) -> None:
    see(MIXED, SINGLE, UNCUT)
    page.goto("/platform/clusters/local/")
    page.get_by_role("link", name="GPUs").click()
    expect(page.get_by_role("heading", name="GPUs of cluster local")).to_be_visible()
    expect(page.get_by_role("row", name=f"{SMALL} H100-80GB 5 8 gpu-1")).to_be_visible()
    node = page.get_by_role("region", name="gpu-1")
    slices = node.locator(".slice")
    assert slices.count() == 10
    expect(slices.nth(3)).to_have_text("1g.10gb , 1 of 8 memory slices, free", use_inner_text=False)
    page.keyboard.press("Tab")
    link = slices.first.get_by_role("link", name="default/digits")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/services/default/digits/")


def test_slices_are_drawn_to_scale(page: Page) -> None:
    see(MIXED, SINGLE)
    page.goto(ADDRESS)

    def widths(node: str) -> list[float]:
        boxes = page.get_by_role("region", name=node).locator(".gpus > li").first.locator(".slice")
        return [box["width"] for each in boxes.all() if (box := each.bounding_box())]

    small, large = widths("gpu-1")[0], widths("gpu-1")[-1]
    assert large / small == pytest.approx(4, rel=0.05)
    assert len(widths("gpu-2")) == 8  # seven slices, and the memory slice that none of them covers
    assert max(widths("gpu-2")) == pytest.approx(min(widths("gpu-2")), rel=0.05)


def test_a_slice_that_pods_share_is_drawn_once(page: Page) -> None:
    shared = f"{SMALL}.shared"
    pods = tuple(GpuPod(f"default/digits-00001-{name}", "default/digits", shared, 1) for name in "ab")
    see(replace(MIXED, count=1, resources={shared: 16, LARGE: 1}, sharers={shared: 4}, pods=pods))
    page.goto(ADDRESS)
    expect(page.get_by_role("row", name=f"{shared} H100-80GB 14 16 gpu-1")).to_be_visible()
    node = page.get_by_role("region", name="gpu-1")
    expect(node).to_contain_text(f"Pods share each {shared} (by 4); one of them is drawn on it.")
    expect(node.locator(".slice")).to_have_count(5)
    expect(node.locator('[data-state="taken"]')).to_have_text(
        ["1g.10gb , 1 of 8 memory slices, taken default/digits"] * 2
    )


def test_what_comes_to_a_slice_is_shown_without_a_reload(page: Page) -> None:
    see(replace(MIXED, pods=()))
    page.goto(ADDRESS)
    expect(page.locator("live-stream")).to_have_text("Live")
    page.evaluate("window.stayed = true")
    see(MIXED)
    expect(page.get_by_role("region", name="gpu-1").locator('[data-state="taken"]')).to_have_count(4)
    expect(page.get_by_role("link", name="vision/faces").first).to_be_visible()
    assert page.evaluate("window.stayed") is True


@pytest.fixture
def cluster(page: Page, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Give what the cluster says of itself when it is asked; its file lets nodes be cut."""
    fake = FakeCluster(gpus=(TWO,))
    monkeypatch.setattr(inventory, "driver_of", lambda _row: fake)
    document = {**CLUSTER, "name": "gpus", "repartition": {}, "patches": []}
    Cluster.objects.create(name="gpus", kind="kubernetes", document=document, created_at=timezone.now())
    return fake


def test_a_cut_is_proposed_and_approved_with_the_keyboard_alone_and_followed_to_its_end(
    page: Page, cluster: FakeCluster
) -> None:
    page.goto("/platform/clusters/gpus/gpus")
    page.get_by_label("Of", exact=True).select_option("3g.40gb")
    page.get_by_role("button", name="Propose a repartition").focus()
    page.keyboard.press("Enter")
    row = page.get_by_role("region", name="of gpu-1")
    expect(row).to_contain_text("Proposed")
    expect(row.get_by_role("group", name="GPU 0 before").locator('[data-change="gone"]')).to_have_count(3)
    expect(row.get_by_role("group", name="GPU 0 after").locator('[data-change="new"]')).to_have_text(
        "3g.40gb , 4 of 8 memory slices, new new"
    )
    expect(row).to_contain_text("1 further GPU of the node stays as it is.")

    row.get_by_role("button", name="Approve…").focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_label("Why").focus()
    page.keyboard.type("the night shift agreed")
    with page.expect_navigation():  # live updates may show the new state before
        page.keyboard.press("Enter")
    expect(row).to_contain_text("Draining")
    expect(page.locator("live-stream")).to_have_text("Live")
    page.evaluate("window.stayed = true")

    Repartition.objects.update(message="waits for 2 GPU pods of services to leave the node")
    expect(row).to_contain_text("Waits for 2 GPU pods of services to leave the node.")
    repartition_abort(
        cluster="gpus", repartition_id=Repartition.objects.get().pk, reason="too slow", actor="bob", now=timezone.now()
    )
    expect(row.get_by_role("button")).to_have_count(0)
    assert page.evaluate("window.stayed") is True


def test_a_proposal_is_declined_with_a_reason_and_what_cannot_be_is_said(
    page: Page, cluster: FakeCluster, complaints: list[str]
) -> None:
    scenes.repartition(cluster="gpus")
    page.goto("/platform/clusters/gpus/gpus")
    page.get_by_role("button", name="Decline…").click()
    page.get_by_role("dialog").get_by_label("Why").fill("digits needs them")
    page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    expect(page.get_by_role("region", name="Earlier repartitions")).to_contain_text("Digits needs them")
    page.get_by_label("Of", exact=True).select_option("1g.10gb")
    page.get_by_role("button", name="Propose a repartition").click()
    expect(page.locator("#notices")).to_contain_text("there are free slices for all of it")
    complaints.clear()  # the browser's own word of the 409


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1280, 1920])
def test_it_fits_every_screen_and_axe_finds_nothing(
    page: Page, width: int, colours: Literal["light", "dark"], screenshots: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme=colours)
    page.goto(ADDRESS)  # nothing is known yet, and the cluster does not answer
    expect(page.get_by_test_id("not-asked")).to_be_visible()
    assert violations(page) == []
    see(MIXED, SINGLE, UNCUT)
    expect(page.get_by_role("heading", name="gpu-3")).to_be_visible()
    page.get_by_role("region", name="gpu-1").get_by_text("4 pods with GPUs").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    monkeypatch.setattr(inventory, "driver_of", lambda _row: FakeCluster(gpus=(MIXED, SINGLE, UNCUT, FOUR)))
    scenes.repartition(FOUR, cluster="local", wanted="3 x 3g.40gb")
    page.goto(ADDRESS)
    expect(page.get_by_role("button", name="Approve…")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    page.screenshot(path=screenshots / f"gpus-{width}-{colours}.png", full_page=True)
