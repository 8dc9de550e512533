"""Custom predictors: versions of images, rollouts between images and models, and what is refused."""

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from accounts.models import AuditEntry
from clusters.models import Cluster
from common.errors import Conflict, InvalidInput
from deployments.models import InferenceService, Revision
from deployments.selectors import service_detail
from deployments.services import service_apply, service_plan
from registry.models import ModelVersion
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.platform import Platform


def image(number: int, name: str = "registry.example.com/predictor") -> str:
    return f"{name}@sha256:{number:064}"


def document(platform: Platform, which: str, policy: str | None = "quick", **container: Any) -> dict[str, Any]:
    made = platform.document(policy=policy)
    predictor = made["spec"]["predictor"]
    del predictor["model"]
    predictor["containers"] = [{"image": which, **container}]
    return made


def put(platform: Platform, made: dict[str, Any], *, dry: bool = False) -> None:
    platform.clock.go_on(1.0)
    arguments: dict[str, Any] = {"document": made, "namespace": None, "name": None, "actor": "alice"}
    if dry:
        service_plan(**{**arguments, "namespace": "default", "name": "digits"}, now=platform.clock())
    else:
        service_apply(**arguments, now=platform.clock())


@pytest.fixture
def custom(platform: Platform) -> Platform:
    """Give a platform on Kubernetes, with a policy."""
    platform.policy(name="quick", steps=[{"weight": 50}], scaleDownDelay="30s")
    Cluster.objects.create(
        name="local", kind="kubernetes", document={**CLUSTER, "name": "local"}, created_at=platform.clock()
    )
    return platform


@pytest.fixture
def live(custom: Platform) -> Platform:
    """Give a live service of an image."""
    put(custom, document(custom, image(1)))
    custom.until(lambda: custom.view().phase == "Ready")
    return custom


def test_a_rollout_between_images_and_back(live: Platform) -> None:
    put(live, document(live, image(2), args=["--fast"]))
    live.until(lambda: live.rollout().phase == "Healthy")
    (first, second) = Revision.objects.order_by("number")
    assert [each.artifact_digest for each in (first, second)] == [f"sha256:{number:064}" for number in (1, 2)]
    versions = ModelVersion.objects.order_by("number")
    assert [(str(each), each.platform, each.status) for each in versions] == [
        ("default.digits version 1", "container", "READY"),
        ("default.digits version 2", "container", "READY"),
    ]
    assert AuditEntry.objects.filter(action="model_version.register").count() == 2
    view = live.view()
    assert view.live is not None
    assert (view.model_version, view.live.image, view.live.protocol) == (2, image(2), "v2")
    desired = live.cluster.desired["default", "digits"]
    assert [each.custom and each.custom.image for each in desired.revisions if each.name == second.name] == [image(2)]

    live.back()
    live.until(lambda: live.rollout().phase == "Healthy")
    container = InferenceService.objects.get().document["spec"]["predictor"]["containers"][0]
    assert container["image"] == image(1), "the file says again what serves"
    put(live, document(live, image(1)))
    assert ModelVersion.objects.count() == 2, "an image is one version, however often it comes back"


def test_from_a_model_to_an_image_and_back(custom: Platform) -> None:
    custom.version(1)
    put(custom, custom.document(policy="quick"))
    custom.until(lambda: custom.view().phase == "Ready")
    put(custom, document(custom, image(1)))
    custom.until(lambda: custom.rollout().phase == "Healthy")
    custom.back()
    custom.until(lambda: custom.rollout().phase == "Healthy")
    predictor = InferenceService.objects.get().document["spec"]["predictor"]
    assert predictor["model"]["storageUri"] == "models:/digits/1"
    assert "containers" not in predictor


def test_a_plan_writes_nothing_and_is_carried_out_at_once(custom: Platform) -> None:
    made = document(custom, image(1))
    planned = service_plan(document=made, namespace="default", name="digits", actor="alice", now=custom.clock())
    assert "new revision digits-00001 of default.digits version 1" in planned.plan.message
    assert not ModelVersion.objects.exists()
    service, created = planned.carry_out()
    service.refresh_from_db()
    assert created
    assert service.model_version == ModelVersion.objects.get() == Revision.objects.get().model_version
    custom.until(lambda: custom.view().phase == "Ready")
    planned = service_plan(
        document=document(custom, image(2)), namespace="default", name="digits", actor="alice", now=custom.clock()
    )
    service, _ = planned.carry_out()
    service.refresh_from_db()
    assert service.model_version is not None
    assert service.model_version.number == 2
    custom.until(lambda: custom.rollout().phase == "Healthy")


def test_a_canary_whose_answers_fail_goes_back(live: Platform) -> None:
    live.policy(name="quick", steps=[{"weight": 50, "analysis": {"minRequests": 50}}], scaleDownDelay="30s")
    put(live, document(live, image(2)))
    for _ in range(30):
        live.metrics.serve("digits-00001", 60)
        live.metrics.serve("digits-00002", 60, failed=30)
        live.turn()
        if live.rollout().phase == "Degraded":
            break
    assert live.rollout().phase == "Degraded"
    assert live.view().stable_revision == "digits-00001"


@pytest.mark.parametrize("dry", [True, False], ids=["dry run", "apply"])
def test_images_of_other_registries_and_tags_are_refused(live: Platform, settings: Settings, dry: bool) -> None:
    settings.ALLOWED_REGISTRIES = ("registry.example.com",)
    for which, what in (
        (image(2, "registry.example.com.evil.com/x"), "allows those of registry.example.com"),
        ("registry.example.com/x:1", "whose content may change"),
    ):
        with pytest.raises(InvalidInput, match=what) as refused:
            put(live, document(live, which), dry=dry)
        assert refused.value.field == "spec.predictor.containers[0].image"
    assert ModelVersion.objects.count() == 1


@pytest.mark.parametrize("dry", [True, False], ids=["dry run", "apply"])
def test_a_policy_that_compares_outputs_is_refused(live: Platform, dry: bool) -> None:
    live.policy(
        name="shadow",
        strategy="shadow",
        then="end",
        steps=[{"weight": 50, "analysis": {"minRequests": 50, "comparison": {}}}],
    )
    with pytest.raises(InvalidInput, match="policy shadow compares outputs, which the runtime of models alone records"):
        put(live, document(live, image(2), policy="shadow"), dry=dry)


def test_an_image_is_no_model(live: Platform) -> None:
    uri = "models:/default.digits/1"
    other = {**live.document(uri, policy=None), "metadata": {"name": "other"}}
    with pytest.raises(Conflict, match="is the image of a custom predictor and has no model files"):
        put(live, other)
    with pytest.raises(Conflict, match="runs the image of a custom predictor and no version of a model"):
        live.start("1")


def test_a_page_shows_image_and_protocol(live: Platform) -> None:
    view = service_detail(namespace="default", name="digits", now=live.clock())
    assert [(each.image, each.protocol) for each in view.revisions] == [(image(1), "v2")]
