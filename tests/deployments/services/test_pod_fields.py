"""Pod fields from the file to the revision: who may have them, what is kept, and what returns with a rollback."""

from typing import Any

import pytest

from clusters.models import Cluster
from common.errors import InvalidInput
from deployments.models import InferenceService, Revision
from deployments.services import service_apply
from integrations.clusters.base import PodFields
from tests.deployments._support.cluster_files import CLUSTER
from tests.deployments._support.platform import Platform

POOL: dict[str, Any] = {"nodeSelector": {"pool": "models"}}


def on_kubernetes(**pods: Any) -> None:
    Cluster.objects.update(kind="kubernetes", document={**CLUSTER, "name": "local", "pods": pods})


def apply(platform: Platform, **fields: Any) -> InferenceService:
    document = platform.document(policy=None)
    document["spec"]["predictor"] |= fields
    platform.clock.go_on(1.0)
    return service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())[0]


@pytest.fixture
def live(platform: Platform) -> Platform:
    """Give a platform whose service is live on Kubernetes, without pod fields."""
    platform.version(1)
    apply(platform)
    on_kubernetes(nodeSelector={"pool": ["models"]})
    platform.until(lambda: platform.view().phase == "Ready")
    return platform


def stable_is(platform: Platform, name: str) -> None:
    platform.until(lambda: platform.view().stable_revision == name)


def test_a_change_makes_a_revision_which_a_rollback_brings_back(live: Platform) -> None:
    apply(live, **POOL)
    stable_is(live, "digits-00002")
    desired = {each.name: each.pod for each in live.cluster.applied[-1].revisions}
    assert desired["digits-00002"] == PodFields(node_selector={"pool": "models"})
    apply(live, **POOL)
    assert Revision.objects.count() == 2
    live.back()
    assert "nodeSelector" not in InferenceService.objects.get().document["spec"]["predictor"]
    stable_is(live, "digits-00001")
    live.back("digits-00002")
    assert InferenceService.objects.get().document["spec"]["predictor"]["nodeSelector"] == {"pool": "models"}


def test_a_rollback_does_not_bring_back_what_is_not_allowed_any_more(live: Platform) -> None:
    apply(live, **POOL)
    stable_is(live, "digits-00002")
    live.back()
    stable_is(live, "digits-00001")
    on_kubernetes()
    with pytest.raises(InvalidInput, match=r"spec\.predictor\.nodeSelector has 'pool: models', which the file of"):
        live.back("digits-00002")


@pytest.mark.parametrize(
    "fields",
    [
        {"nodeSelector": {"pool": "system"}},
        {"serviceAccountName": "digits"},
        {"priorityClassName": "system-cluster-critical"},
        {"tolerations": [{"key": "dedicated", "operator": "Exists"}]},
        {"imagePullSecrets": [{"name": "of-another-team"}]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_the_cluster_does_not_allow_makes_no_revision(fields: dict[str, Any], live: Platform) -> None:
    with pytest.raises(InvalidInput, match="does not allow services"):
        apply(live, **fields)
    assert Revision.objects.count() == 1
