"""The page and the API of a cluster's GPUs."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from deployments.services.revisions.gpu_assignment import LOOKS_EVERY, gpus_due, gpus_note
from gpus.models import Repartition
from gpus.selectors.gpus import gpu_marks
from gpus.services import inventory
from gpus.web.gpu_page import gpu_page
from integrations.clusters.base import GpuPod, NodeGpus, Nodes
from placement.repartition.machine import Phase
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.fakes import FakeCluster

Api = Callable[..., APIClient]
GPU_NODE = NodeGpus(
    node="gpu-1",
    product="NVIDIA-H100-80GB-HBM3",
    memory_mib=81559,
    count=1,
    strategy="mixed",
    config="custom",
    config_state="pending",
    resources={"nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-3g.40gb": 1},
    pods=(GpuPod("default/digits-00001-a", "default/digits", "nvidia.com/mig-3g.40gb", 1),),
)


def see(*nodes: NodeGpus, unknown: str = "") -> None:
    """Let the cluster `local` be known to have these nodes."""
    gpus_note(cluster_id=Cluster.objects.get().pk, nodes=Nodes(gpus=nodes, unknown=unknown), now=timezone.now())


@pytest.fixture
def page(db: None, settings: Settings, tmp_path: Path) -> Callable[[], str]:
    """Give what an administrator sees; the cluster itself does not answer."""
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    scenes.service()
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN)})

    def shown() -> str:
        return client.get("/platform/clusters/local/gpus").content.decode()

    return shown


def test_a_local_cluster_leads_to_those_that_give_gpus_out(page: Callable[[], str]) -> None:
    Cluster.objects.create(name="gpus", kind="kubernetes", document=CLUSTER, created_at=timezone.now())
    shown = page()
    assert 'href="/platform/clusters/gpus/gpus"' in shown
    assert 'href="/platform/clusters/new"' in shown
    Cluster.objects.filter(name="gpus").delete()
    assert "GPUs of cluster gpus" not in page()
    see(GPU_NODE)
    assert not marked(page(), "gpus-elsewhere")


def test_a_node_is_drawn_as_it_is_cut_with_who_is_on_it(page: Callable[[], str]) -> None:
    see(GPU_NODE)
    shown = page()
    assert shown.count('data-state="free"') == 4
    assert shown.count('data-start="4" data-size="4" data-state="taken"') == 1
    assert shown.count('<a href="/services/default/digits/">default/digits</a>') == 2  # on the slice, and in the table
    for told in ("gpu-1", "H100-80GB, MIG strategy mixed", "reports pending", "default/digits-00001-a", "mig-1g.10gb"):
        assert told in shown


def test_what_is_known_is_shown_where_the_cluster_does_not_answer(page: Callable[[], str], api: Api) -> None:
    assert marked(page(), "not-seen")
    see(GPU_NODE)
    shown = page()
    answer = api(Scope.ADMIN).get("/api/v1/clusters/local/gpus")
    assert answer.status_code == 503
    for told in (answer.json()["error"]["message"], shown):
        assert "agent has not run" in told
    assert "gpu-1" in shown


def test_a_cluster_without_gpus_says_who_offers_them(page: Callable[[], str]) -> None:
    see()
    assert marked(page(), "no-gpus")


def test_a_cluster_whose_nodes_may_not_be_read_says_so(page: Callable[[], str]) -> None:
    see(unknown="the role fairlead-driver-nodes is not bound")
    assert "Its nodes are unknown: the role fairlead-driver-nodes is not bound." in page()


def test_who_watches_is_told_what_the_cluster_is_seen_to_have(db: None) -> None:
    cluster = scenes.service().cluster_id
    before, marks = gpu_page("local"), gpu_marks([cluster])
    see(GPU_NODE)
    assert gpu_page("local").cursor != before.cursor
    assert gpu_marks([cluster]) != marks


def test_reading_the_page_takes_the_same_queries_for_any_number_of_nodes(
    db: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    scenes.service()
    for names in (("a",), ("a", "b", "c")):
        see(*(replace(GPU_NODE, node=name) for name in names))
        with django_assert_num_queries(5):
            gpu_page("local")


def test_a_reader_sees_no_pods_of_others(db: None, api: Api) -> None:
    scenes.service()
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.READ)})
    for path in ("", "/stream"):
        assert client.get(f"/platform/clusters/local/gpus{path}").status_code == 403
    assert api(Scope.WRITE).get("/api/v1/clusters/local/gpus").status_code == 403


@pytest.fixture
def cluster(db: None, monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    """Give a cluster whose file lets its nodes be cut, with a node of seven small slices."""
    fake = FakeCluster(gpus=(scenes.GPU_NODE,))
    monkeypatch.setattr(inventory, "driver_of", lambda _row: fake)
    document = {**CLUSTER, "name": "gpus", "repartition": {}, "patches": []}
    Cluster.objects.create(name="gpus", kind="kubernetes", document=document, created_at="2026-01-01T12:00:00Z")
    return fake


def test_a_repartition_is_proposed_decided_and_aborted_on_the_page(cluster: FakeCluster) -> None:
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN)})
    base = "/platform/clusters/gpus"
    assert client.post(f"{base}/repartitions", {"count": "1", "profile": "3g.40gb"}).status_code == 302
    one = f"{base}/repartitions/{Repartition.objects.get().pk}"
    shown = client.get(f"{base}/gpus").content.decode()
    assert shown.count('data-change="gone"') == 3
    assert shown.count('data-change="new"') == 1
    for verb, phase in (("approve", "Draining"), ("abort", "Aborted")):
        assert f"{one}/{verb}" in shown
        assert client.post(f"{one}/{verb}", {"reason": "due"}).status_code == 302
        assert Repartition.objects.get().phase == phase
        shown = client.get(f"{base}/gpus").content.decode()
    assert f"{one}/" not in shown
    assert client.post(f"{one}/forget").status_code == 404
    assert client.post(f"{base}/repartitions", {"count": "1", "profile": "1g.10gb"}).status_code == 409  # there is room


def test_what_a_repartition_waits_for_is_told_who_watches(cluster: FakeCluster) -> None:
    row = scenes.repartition(cluster="gpus")
    before = gpu_page("gpus").cursor
    Repartition.objects.filter(pk=row.pk).update(message="waits for 1 GPU pod of services to leave the node")
    assert gpu_page("gpus").cursor != before


def test_nodes_are_looked_at_while_one_is_cut_anew_and_once_after_its_end(cluster: FakeCluster) -> None:
    row, there, now = scenes.repartition(cluster="gpus"), Cluster.objects.get(name="gpus"), timezone.now()
    assert not gpus_due(there, now)
    Repartition.objects.filter(pk=row.pk).update(phase=Phase.DRAINING)
    assert gpus_due(there, now)
    Repartition.objects.filter(pk=row.pk).update(phase=Phase.DONE, settled_at=now)
    assert gpus_due(there, now + LOOKS_EVERY)
    assert not gpus_due(there, now + 3 * LOOKS_EVERY)
    there.gpus_at = now - LOOKS_EVERY / 10
    assert gpus_due(there, now), "at once"
    there.gpus_at = now
    assert not gpus_due(there, now), "and once"


def test_who_does_not_administer_decides_nothing(cluster: FakeCluster) -> None:
    row = scenes.repartition(cluster="gpus")
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.WRITE)})
    for path in ("", f"/{row.pk}/approve", f"/{row.pk}/decline", f"/{row.pk}/abort"):
        assert client.post(f"/platform/clusters/gpus/repartitions{path}", {"reason": "x"}).status_code == 403
    assert Repartition.objects.get().phase == "Proposed"
