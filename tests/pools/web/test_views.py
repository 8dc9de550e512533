"""Pages and REST API of model pools."""

import pytest
from django.test import Client

import pools.selectors
from accounts.domain.scopes import Scope
from deployments.models import Revision
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import signed_in, text
from tests.pools._support.pages import PoolCluster, busy, thrashing

pytestmark = pytest.mark.django_db
POOL = "/pools/default/warm"


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> PoolCluster:
    """Return the cluster of a pool with two services."""
    found = busy()
    monkeypatch.setattr(pools.selectors, "driver_now", lambda *_: found)
    scenes.model_pool("pooled", "another")
    return found


@pytest.fixture
def viewer() -> Client:
    return signed_in(Scope.READ)


def test_without_pools_the_list_says_how_to_make_one(viewer: Client) -> None:
    [said] = marked(text(viewer, "/pools/"), "no-pools")
    assert "spec.predictor.modelPool" in said


def test_a_pool_shows_what_its_replicas_report(viewer: Client, cluster: PoolCluster) -> None:
    [row] = marked(text(viewer, "/pools/"), "pools")
    assert "default/warm" in row
    page = text(viewer, POOL)
    assert marked(page, "hits") == ["92.0 %"]
    assert marked(page, "memory") == ["660 MiB of 2.0 GiB"]
    assert marked(page, "load-failures") == ["Failed loads: 1 corrupt."]
    [models] = marked(page, "models")
    assert models.index("default/pooled") < models.index("default/another"), "the largest first"
    assert "default/another, version 3: 2000 ms" in marked(page, "slowest")[0]
    assert not any(marked(page, each) for each in ("advice", "problem", "no-models", "no-services"))
    cluster.away = "the cluster is away"
    page = text(viewer, POOL)
    assert marked(page, "problem") == ["Some figures are missing: the cluster is away."]
    assert marked(page, "no-replicas")


def test_a_service_names_its_pool(viewer: Client, cluster: PoolCluster) -> None:
    assert marked(text(viewer, "/services/default/pooled/"), "in-pool") == ["default/warm"]
    assert "served by model pool default/warm" in marked(text(viewer, "/services/default/pooled/"), "pool")[0]
    assert marked(text(viewer, "/services/default/warm/"), "is-pool") == ["1.0 GiB of models in each replica"]


def test_a_pool_that_is_too_small_says_what_to_change(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools.selectors, "driver_now", lambda *_: thrashing())
    scenes.model_pool("pooled", "large")
    scenes.never_fits("large")
    evicts, never = marked(text(viewer, POOL), "advice")
    assert evicts.startswith("Models were evicted 465 times for 46 % of the requests")
    assert never.startswith("3 loads failed, since the model of default/large never fits")
    assert viewer.get("/api/v1/model-pools/default/warm").json()["advice"] == [evicts, never]
    [says] = marked(text(viewer, "/services/default/large/"), "never-fits")
    assert says.startswith("The model of large-00001 never fits into model pool default/warm. Raise memoryBudget")
    assert not marked(text(viewer, "/services/default/pooled/"), "never-fits")


def test_a_hot_model_has_copies_on_the_page_and_in_the_api(viewer: Client, cluster: PoolCluster) -> None:
    copies = {"copies": {"default.another": 2, "default.removed": 2}}
    Revision.objects.filter(service__name="warm").update(load={"copies": copies})
    [services] = marked(text(viewer, POOL), "services")
    assert services.split("default/another")[1].split()[1] == "2"
    inside = viewer.get("/api/v1/model-pools/default/warm/services").json()["results"]
    assert [(each["name"], each["copies"]) for each in inside] == [("pooled", 1), ("another", 2)]


def test_an_empty_pool_says_how_models_come_in(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools.selectors, "driver_now", lambda *_: PoolCluster({}))
    scenes.model_pool()
    page = text(viewer, POOL)
    assert marked(page, "no-services")
    assert marked(page, "no-models")


def test_the_api_has_the_same_figures(viewer: Client, cluster: PoolCluster) -> None:
    found = viewer.get("/api/v1/model-pools/default/warm").json()
    assert (found["services"], found["memory_budget_bytes"], found["shared_with"]) == (2, 1 << 30, ["vision"])
    assert (found["figures"]["hits"], found["figures"]["evictions"], found["figures"]["waiting"]) == (1380, 40, 2)
    assert [each["replica"] for each in found["replicas"]] == ["warm-00001-0", "warm-00001-1"]
    assert [(each["service"], each["copies"]) for each in found["models"]] == [("pooled", 2), ("another", 1)]
    inside = viewer.get("/api/v1/model-pools/default/warm/services").json()["results"]
    assert [(each["name"], each["phase"], each["copies"]) for each in inside] == [
        ("pooled", "Ready", 1),
        ("another", "Ready", 1),
    ]
    assert viewer.get("/api/v1/model-pools/default/pooled").status_code == 404
