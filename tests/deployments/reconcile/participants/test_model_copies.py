"""Copies of a pool's hot models, decided in the pool's own turns."""

from collections.abc import Mapping
from dataclasses import replace

from clusters.models import Cluster
from deployments.models import InferenceService, Revision
from deployments.services import service_apply
from integrations.clusters.base import ModelTime
from integrations.clusters.local.documents import revision_from_json, revision_to_json
from tests.deployments._support.platform import Platform

POOL = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "metadata": {"name": "warm", "namespace": "default"},
    "spec": {"predictor": {"minReplicas": 3, "modelPool": {"memoryBudget": "1Gi"}}},
}


def ready_pool(platform: Platform) -> InferenceService:
    service_apply(document=POOL, namespace=None, name=None, actor="alice", now=platform.clock())
    platform.until(lambda: InferenceService.objects.filter(phase="Ready").exists())
    return InferenceService.objects.get()


def compute(platform: Platform, seconds: float) -> None:
    """Have the first replica computed for so long with one model."""
    key = ("warm-00001-0", "warm-00001")
    models = (ModelTime("default.hot", round(seconds * 1e6), 1 << 20), ModelTime("default.cold", 200_000, 1 << 20))
    platform.metrics.samples[key] = replace(platform.metrics.samples[key], models=models)


def copies(platform: Platform) -> Mapping[str, int]:
    [revision] = platform.cluster.desired["default", "warm"].revisions
    assert revision_from_json(revision_to_json(revision)).pool_copies == revision.pool_copies
    return revision.pool_copies


def test_a_hot_model_gets_copies_and_loses_them_after_the_window(platform: Platform) -> None:
    service = ready_pool(platform)
    platform.turn(seconds=11)
    compute(platform, 1)
    platform.turn(seconds=11)
    generation = platform.cluster.desired["default", "warm"].generation
    assert copies(platform) == {}
    compute(platform, 12)
    platform.turn(seconds=5)
    assert copies(platform) == {}, "5 s say nothing"
    platform.turn(seconds=6)
    assert copies(platform) == {"default.hot": 3}
    assert platform.cluster.desired["default", "warm"].generation == generation + 1
    for _ in range(20):
        platform.turn(seconds=11)
    assert copies(platform) == {"default.hot": 3}
    for _ in range(10):
        platform.turn(seconds=11)
    assert copies(platform) == {}
    service.refresh_from_db()
    assert service.generation == generation + 2
    assert service.settled != service.changes, "each sweep turns to the pool"


def test_copies_stay_while_counters_cannot_be_read(platform: Platform) -> None:
    ready_pool(platform)
    for seconds in (1, 12):
        compute(platform, seconds)
        platform.turn(seconds=11)
    assert copies(platform) == {"default.hot": 3}
    platform.metrics.away = "the replica does not answer"
    for _ in range(40):
        platform.turn(seconds=11)
    assert copies(platform) == {"default.hot": 3}


def test_a_pool_of_one_replica_or_on_kubernetes_has_none(platform: Platform) -> None:
    ready_pool(platform)
    Cluster.objects.update(kind="kubernetes")
    Revision.objects.update(load={})
    platform.memory = type(platform.memory)(platform.memory.clock)
    for seconds in (1, 12, 23):
        compute(platform, seconds)
        platform.turn(seconds=11)
    assert copies(platform) == {}
    assert "copies" not in Revision.objects.get().load
    Cluster.objects.update(kind="local")
    Revision.objects.update(replicas=1)
    platform.memory = type(platform.memory)(platform.memory.clock)
    platform.turn(seconds=11)
    assert "copies" not in Revision.objects.get().load
