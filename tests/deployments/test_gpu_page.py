"""The page and the API of a cluster's GPUs."""

from collections.abc import Callable
from pathlib import Path

from django.template.loader import render_to_string
from django.test import Client
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.scopes import Scope
from deployments.placement.inventory import gpu_node
from deployments.services import ClusterGpus
from integrations.clusters.base import GpuPod, NodeGpus
from tests import scenes

Api = Callable[..., APIClient]
_NODE = NodeGpus(
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


def test_a_node_is_drawn_as_it_is_cut() -> None:
    found = ClusterGpus((gpu_node(_NODE),), "")
    page = render_to_string("deployments/_cluster_gpus.html", {"found": found})
    assert page.count('data-state="free"') == 4
    assert page.count('data-state="taken"') == 1
    assert 'data-start="4" data-size="4" data-state="taken">3g.40gb' in page
    for told in ("gpu-1", "H100-80GB, MIG strategy mixed", "says pending", "default/digits-00001-a", "mig-1g.10gb"):
        assert told in page


def test_a_cluster_without_gpus_says_who_offers_them() -> None:
    page = render_to_string("deployments/_cluster_gpus.html", {"found": ClusterGpus((), "")})
    assert "No node offers an NVIDIA GPU" in page


def test_a_cluster_that_does_not_answer_says_so(db: None, api: Api, settings: Settings, tmp_path: Path) -> None:
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN)})
    scenes.service()
    answer = api(Scope.ADMIN).get("/api/v1/clusters/local/gpus")
    assert answer.status_code == 503
    page = client.get("/platform/clusters/local/gpus").content.decode()
    fragment = client.get("/platform/clusters/local/gpus", headers={"HX-Request": "true"}).content.decode()
    assert "<html" in page
    assert "<html" not in fragment
    for told in (answer.json()["error"]["message"], page, fragment):
        assert "agent has not run" in told


def test_a_reader_sees_no_pods_of_others(db: None, api: Api) -> None:
    scenes.service()
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.READ)})
    assert client.get("/platform/clusters/local/gpus").status_code == 403
    assert api(Scope.WRITE).get("/api/v1/clusters/local/gpus").status_code == 403
