"""Patches from the file to the revision: who may have them, what is kept, and what comes back with a rollback."""

from typing import Any

import pytest
from django.utils import timezone

from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from common.errors import InvalidInput
from deployments.models import InferenceService, Revision
from deployments.services import service_apply
from tests.deployments._support.cluster_files import CLUSTER, OF_CLUSTER
from tests.deployments._support.platform import Platform

OF_SERVICE = {"target": {"kind": "Service"}, "json6902": [{"op": "add", "path": "/spec/x", "value": 1}]}


def on_kubernetes(*, service_patches: bool = True) -> None:
    document = {**CLUSTER, "name": "local", "servicePatches": service_patches}
    Cluster.objects.update(kind="kubernetes", document=document)


def apply(platform: Platform, *patches: Any, **file: Any) -> InferenceService:
    document = platform.document(policy=None, **file)
    if patches:
        document["spec"]["patches"] = list(patches)
    platform.clock.go_on(1.0)
    return service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())[0]


def kept(number: int) -> Any:
    return Revision.objects.get(number=number).patches


@pytest.fixture
def live(platform: Platform) -> Platform:
    """Give a platform whose service is live on Kubernetes, without patches of its own."""
    platform.version(1)
    apply(platform)
    on_kubernetes()
    platform.until(lambda: platform.view().phase == "Ready")
    return platform


def test_a_revision_keeps_the_patches_of_its_day(live: Platform) -> None:
    assert kept(1) == {"cluster": [], "service": []}
    apply(live, OF_SERVICE)
    assert kept(2) == {"cluster": [OF_CLUSTER], "service": [OF_SERVICE]}
    live.until(lambda: live.view().stable_revision == "digits-00002")
    (desired,) = (each for each in live.cluster.applied[-1].revisions if each.name == "digits-00002")
    assert [each.name for each in desired.patches] == ["patches of the cluster[0]", "spec.patches[0]"]
    Cluster.objects.update(document={**Cluster.objects.get().document, "patches": []})
    apply(live, OF_SERVICE)
    assert Revision.objects.count() == 2


def test_a_rollback_brings_the_patches_back_into_the_file(live: Platform) -> None:
    apply(live, OF_SERVICE)
    live.until(lambda: live.view().stable_revision == "digits-00002")
    live.back()
    assert "patches" not in InferenceService.objects.get().document["spec"]
    live.until(lambda: live.view().stable_revision != "digits-00002")
    live.back("digits-00002")
    assert InferenceService.objects.get().document["spec"]["patches"] == [OF_SERVICE]


def test_a_service_has_none_of_its_own_where_the_cluster_does_not_allow_them(live: Platform) -> None:
    on_kubernetes(service_patches=False)
    with pytest.raises(InvalidInput, match="servicePatches"):
        apply(live, OF_SERVICE)
    assert Revision.objects.count() == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param({"target": {"kind": "CronJob"}, "merge": {}}, "what is rendered is", id="another kind"),
        pytest.param({**OF_CLUSTER, "merge": {"metadata": {"name": "x"}}}, "metadata.name", id="what is ours"),
        pytest.param(
            {"target": {"kind": "Service"}, "json6902": [{"op": "remove", "path": "/spec/x"}]},
            "does not fit",
            id="unfit",
        ),
    ],
)
def test_a_cluster_file_is_refused_for_a_patch_that_no_service_could_have(patch: Any, said: str) -> None:
    document = {**CLUSTER, "patches": [patch]}
    with pytest.raises(InvalidInput, match=said):
        cluster_apply(document=document, name="production", actor="alice", now=timezone.now())


def test_the_local_cluster_refuses_them(platform: Platform) -> None:
    platform.version(1)
    with pytest.raises(InvalidInput, match=r"spec\.patches are for services on Kubernetes"):
        apply(platform, OF_SERVICE)
