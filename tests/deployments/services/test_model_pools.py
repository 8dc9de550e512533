"""Model pools: services without replicas of their own, whose pool may be another team's."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.models import AuditEntry
from clusters.models import Cluster
from common.errors import Conflict, InvalidInput
from deployments.mapping import own_scaling_of, revision_state, service_state
from deployments.models import InferenceService, Revision
from deployments.services import service_delete, service_restart
from registry.models import ModelVersion
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.model_pools import file, pool, pooled, put
from tests.deployments._support.platform import Platform


def test_a_pool_is_a_service_without_a_model(platform: Platform) -> None:
    service = pool(platform)
    revision = Revision.objects.get(service=service)
    assert (revision.model_pool, revision.replicas, revision.pool) == ({"memoryBudget": 1 << 30}, 2, "")
    version = ModelVersion.objects.get()
    assert (str(version), version.platform, version.has_files) == ("default.warm version 1", "pool", False)
    pool(platform)
    assert Revision.objects.count() == 1, "the same file is no change"
    pool(platform, sharedWith=["vision"])
    assert Revision.objects.count() == 1, "who may use it is not of its replicas"
    pool(platform, memory="2Gi")
    assert Revision.objects.count() == 2
    assert ModelVersion.objects.count() == 1


def test_a_service_in_a_pool_is_rolled_out_by_the_pools_replicas(platform: Platform) -> None:
    pool(platform)
    platform.version(1)
    revision = pooled(platform)
    assert (revision.pool, revision.replicas, revision.min_replicas) == ("default/warm", 1, 1)


def test_a_pool_of_another_team_has_to_be_shared(platform: Platform) -> None:
    pool(platform, "speech")
    platform.version(1)
    with pytest.raises(InvalidInput, match="no such model pool for services of namespace default"):
        pooled(platform, where="speech/warm")
    with pytest.raises(InvalidInput, match="no such model pool for services of namespace default"):
        pooled(platform, where="speech/other")
    pool(platform, "speech", sharedWith=["default"])
    assert pooled(platform, where="speech/warm").pool == "speech/warm"


def test_the_cluster_is_told_whom_a_pool_is_shared_with(platform: Platform) -> None:
    service = pool(platform, sharedWith=["vision", "default"])

    def told() -> tuple[str, ...]:
        row = InferenceService.objects.get(pk=service.pk)
        return service_state(row, map(revision_state, Revision.objects.filter(service=row)), None).shared_with

    assert told() == ("vision",), "its own namespace needs no permission"
    pool(platform)
    assert told() == ()


def test_a_file_has_its_pool_looked_up_once(platform: Platform) -> None:
    pool(platform)
    for version in (1, 2):
        platform.version(version)
        with CaptureQueriesContext(connection) as asked:
            pooled(platform, version=version)
        assert sum("'warm'" in each["sql"] and "SELECT" in each["sql"] for each in asked.captured_queries) == 1


def test_a_service_in_a_pool_may_earn_replicas(platform: Platform) -> None:
    pool(platform)
    platform.version(1)
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    scaling = {"minReplicas": 0, "maxReplicas": 3, "scaleTarget": 5}
    put(platform, file("digits", {"pool": "warm", "model": model, **scaling}))
    revision = Revision.objects.get(service__name="digits")
    assert (revision.replicas, revision.max_replicas, revision.own_replicas) == (1, 1, 0)
    found = own_scaling_of(revision)
    assert found is not None
    assert (found.min_replicas, found.max_replicas, found.target) == (0, 3, 5)


def test_a_service_that_may_sleep_is_in_the_default_pool(platform: Platform, settings: Any) -> None:
    settings.DEFAULT_MODEL_POOL = "speech/warm"
    platform.version(1)
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    asleep = {"minReplicas": 0, "model": model}
    put(platform, file("early", asleep))
    pool(platform, "speech")
    put(platform, file("foreign", asleep))
    pool(platform, "speech", sharedWith=["default"])
    put(platform, file("digits", asleep))
    put(platform, file("digits", asleep))
    put(platform, file("shadowed", asleep | {"logger": {"url": "http://127.0.0.1:1/", "mode": "all"}}))
    put(platform, file("awake", {"model": model}))
    found = dict(Revision.objects.values_list("service__name", "pool"))
    pools = dict.fromkeys(("early", "foreign", "shadowed", "awake"), "")
    assert {name: found[name] for name in pools} == pools, "absent, not shared, not for pools, never asleep"
    assert found["digits"] == "speech/warm"
    predictor = InferenceService.objects.get(name="digits").document["spec"]["predictor"]
    assert (predictor["pool"], predictor["maxReplicas"]) == ("speech/warm", 1)
    assert Revision.objects.filter(service__name="digits").count() == 1, "the same file is no change"


def test_a_service_is_no_pool(platform: Platform) -> None:
    platform.version(1)
    platform.apply(policy=None)
    with pytest.raises(InvalidInput, match="'default/digits', which is a service and no model pool"):
        pooled(platform, "other", where="digits")
    with pytest.raises(Conflict, match="digits is no model pool and stays so"):
        put(platform, file("digits", {"modelPool": {"memoryBudget": "1Gi"}}))


def test_a_pool_with_services_is_not_deleted(platform: Platform) -> None:
    pool(platform)
    platform.version(1)
    for number in range(5):
        pooled(platform, f"digits-{number}")
    delete = {"namespace": "default", "actor": "alice", "now": platform.clock()}
    with pytest.raises(Conflict, match="serves default/digits-0, default/digits-1, default/digits-2 and more; delete"):
        service_delete(name="warm", **delete)
    for number in range(5):
        service_delete(name=f"digits-{number}", **delete)
    service_delete(name="warm", **delete)
    assert AuditEntry.objects.filter(action="service.delete").count() == 6


def test_what_is_the_pools_is_refused_for_its_services(platform: Platform) -> None:
    pool(platform)
    platform.version(1)
    pooled(platform)
    with pytest.raises(Conflict, match="has no replicas of its own; restart its model pool default/warm"):
        service_restart(namespace="default", name="digits", actor="alice", now=platform.clock())


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            {
                "strategy": "shadow",
                "then": "end",
                "steps": [{"weight": 20, "analysis": {"minRequests": 50, "comparison": {}}}],
            },
            "compares outputs",
        ),
        (
            {"steps": [{"mirror": 50, "analysis": {"minRequests": 50, "comparison": {}}}, {"weight": 50}]},
            "compares outputs",
        ),
    ],
)
def test_policies_that_need_replicas_of_their_own(platform: Platform, changed: dict[str, Any], sentence: str) -> None:
    pool(platform)
    platform.version(1)
    platform.policy(name="plain", steps=[{"weight": 50}])
    platform.policy(name="rich", **changed)
    pooled(platform, rollout={"policy": "plain"})
    InferenceService.objects.filter(name="digits").update(live_at=platform.clock())
    platform.version(2)
    with pytest.raises(InvalidInput, match=sentence):
        pooled(platform, version=2, rollout={"policy": "rich"})


@pytest.mark.parametrize(("platform_name", "is_refused"), [("python", False), ("ensemble", True)])
def test_of_code_only_models_in_python_are_in_pools(platform: Platform, platform_name: str, is_refused: bool) -> None:
    pool(platform)
    ModelVersion.objects.filter(pk=platform.version(1).pk).update(platform=platform_name)
    model = {"modelFormat": {"name": "python"}, "storageUri": "models:/digits/1"}
    if is_refused:
        with pytest.raises(InvalidInput, match="platform ensemble, which needs replicas of its own"):
            put(platform, file("digits", {"pool": "warm", "model": model}))
        return
    put(platform, file("digits", {"pool": "warm", "model": model}))
    assert Revision.objects.get(service__name="digits").pool == "default/warm"


def on_kubernetes(platform: Platform) -> None:
    document = {**CLUSTER, "name": "local"}
    Cluster.objects.create(name="local", kind="kubernetes", document=document, created_at=platform.clock())


def test_on_kubernetes_the_default_pool_takes_new_services_alone(platform: Platform, settings: Any) -> None:
    settings.DEFAULT_MODEL_POOL = "default/warm"
    on_kubernetes(platform)
    pool(platform)
    platform.version(1)
    predictor = {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}}
    put(platform, file("early", predictor))
    for _ in range(2):
        put(platform, file("early", {"minReplicas": 0, **predictor}))
        put(platform, file("digits", {"minReplicas": 0, **predictor}))
    found = Revision.objects.exclude(service__name="warm").values_list("service__name", "pool").distinct()
    assert dict(found) == {"early": "", "digits": "default/warm"}


def test_on_kubernetes_a_service_moves_to_another_pool_by_way_of_own_replicas(platform: Platform) -> None:
    on_kubernetes(platform)
    pool(platform)
    pool(platform, "speech", sharedWith=["default"])
    platform.version(1)
    pooled(platform)
    with pytest.raises(Conflict, match="on Kubernetes it moves there by way of replicas of its own"):
        pooled(platform, where="speech/warm")
    platform.apply(policy=None)
    assert Revision.objects.filter(service__name="digits").latest("pk").pool == ""


def before_a_shadow(platform: Platform) -> None:
    pool(platform)
    platform.version(1)
    platform.policy(name="shadow", strategy="shadow", then="end", steps=[{"weight": 20}])
    pooled(platform)
    InferenceService.objects.filter(name="digits").update(live_at=platform.clock())
    platform.version(2)


def test_on_kubernetes_a_shadow_in_a_pool_is_refused(platform: Platform) -> None:
    on_kubernetes(platform)
    before_a_shadow(platform)
    with pytest.raises(InvalidInput, match="is a shadow, and a route of the Gateway API cannot name"):
        pooled(platform, version=2, rollout={"policy": "shadow"})


def test_on_one_machine_a_shadow_in_a_pool_is_rolled_out(platform: Platform) -> None:
    before_a_shadow(platform)
    assert pooled(platform, version=2, rollout={"policy": "shadow"}).pool == "default/warm"
