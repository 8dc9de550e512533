"""A service that asks for a GPU, or a slice of one."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.models import Cluster, InferenceService, Revision
from deployments.services import service_apply
from integrations.clusters.base import Resources
from tests.deployments.conftest import Platform
from tests.deployments.services.test_patches import CLUSTER

SLICE = "nvidia.com/mig-1g.10gb"


def apply(platform: Platform, **limits: Any) -> InferenceService:
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["resources"] = {"limits": limits}
    platform.clock.go_on(1.0)
    return service_apply(document=document, namespace=None, name=None, actor="ops", now=platform.clock())[0]


def name_image(image: str) -> None:
    document = {**CLUSTER, "name": "local", "patches": []} | ({"gpuRuntimeImage": image} if image else {})
    Cluster.objects.update(kind="kubernetes", document=document)


@pytest.fixture
def live(platform: Platform) -> Platform:
    """Give a platform whose service is live on a Kubernetes cluster with an image for GPUs."""
    platform.version(1)
    platform.apply(policy=None)
    name_image("fairlead/serving-runtime:test-cuda")
    platform.until(lambda: platform.view().phase == "Ready")
    return platform


def test_another_slice_is_another_revision(live: Platform) -> None:
    apply(live, **{SLICE: 1})
    live.until(lambda: live.view().stable_revision == "digits-00002")
    desired = live.cluster.applied[-1].revisions[-1]
    assert desired.resources == Resources(accelerator=SLICE)
    apply(live, **{SLICE: 1})
    assert Revision.objects.count() == 2
    apply(live, **{"nvidia.com/mig-3g.40gb": 1})
    asked = [each.accelerator for each in Revision.objects.order_by("number")]
    assert asked == ["", SLICE, "nvidia.com/mig-3g.40gb"]


def test_without_an_image_for_gpus_nothing_is_made(live: Platform) -> None:
    name_image("")
    with pytest.raises(InvalidInput, match="apply it with gpuRuntimeImage") as caught:
        apply(live, **{SLICE: 1})
    assert caught.value.field == f"spec.predictor.model.resources.limits.{SLICE}"
    assert Revision.objects.count() == 1
