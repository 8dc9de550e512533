"""Objects at a real API server and services on the database: who wins where both say something."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.roles import Owned
from accounts.models import Ownership
from clusters.models import Cluster
from common.uris import parse_prefixes
from custom_resources.domain.objects import FINALIZER
from custom_resources.models import ResourceObject
from deployments.domain.service_state.owner import stored_owner
from deployments.models import InferenceService, RolloutPolicy
from deployments.services import service_stop
from integrations.clusters.kubernetes import custom_resources
from integrations.clusters.kubernetes.api.resource_types import (
    INFERENCE_SERVICE,
    MODEL_VERSION,
    ROLLOUT,
    ROLLOUT_POLICY,
)
from registry.models import Alias, ModelImport
from tests.cluster.plane import ControlPlane
from tests.custom_resources._support.followed import Followed, following
from tests.deployments._support.platform import POLICY
from tests.scenes import team_there

pytestmark = pytest.mark.cluster
DEFINITIONS = Path(custom_resources.__file__).with_name("crds.yaml")
STEPS = {"steps": POLICY["steps"]}


@pytest.fixture
def followed(db: None, plane: ControlPlane, settings: Settings) -> Iterator[Followed]:
    with following(plane, settings) as it:
        yield it


def spec(replicas: int = 1) -> dict[str, Any]:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    return {"predictor": {"minReplicas": replicas, "model": model}}


def test_a_service_that_is_there_is_taken_over_only_where_the_object_says_so(followed: Followed) -> None:
    document = {**followed.platform.document(policy=None)}
    document["spec"]["cluster"] = "here"
    followed.platform.apply(policy=None)
    InferenceService.objects.update(cluster=Cluster.objects.get(name="here"), document=document)
    followed.apply(INFERENCE_SERVICE, "digits", spec(2))
    followed.until(lambda: "is there already" in followed.why(INFERENCE_SERVICE, "digits", "Degraded"), "its refusal")
    assert stored_owner(InferenceService.objects.get().owner_object) is None

    followed.apply(INFERENCE_SERVICE, "digits", spec(2), **{"take-over": "true"})
    followed.until(lambda: stored_owner(InferenceService.objects.get().owner_object), "the take-over")
    predictor = InferenceService.objects.get().document["spec"]["predictor"]
    assert predictor["minReplicas"] == 2


def test_changes_by_api_are_written_into_an_object_that_adopts_them(followed: Followed) -> None:
    followed.apply(INFERENCE_SERVICE, "digits", spec(), changes="adopt")
    followed.until(InferenceService.objects.exists, "the service")
    document = followed.platform.document(policy=None, replicas=3)
    followed.platform.apply(policy=None, replicas=3)
    followed.until(
        lambda: followed.get(INFERENCE_SERVICE, "digits")["spec"]["predictor"]["minReplicas"] == 3, "the adopted change"
    )
    spec_now = followed.get(INFERENCE_SERVICE, "digits")["spec"]
    assert spec_now["predictor"]["model"] == document["spec"]["predictor"]["model"]
    service_stop(namespace="default", name="digits", actor="alice", now=timezone.now())
    assert InferenceService.objects.get().stopped


def test_of_policies_of_one_name_the_first_wins_until_it_is_gone(followed: Followed) -> None:
    elsewhere = Cluster.objects.create(name="elsewhere", kind="kubernetes", created_at=timezone.now())
    followed.platform.policy(name="careful")
    first = ResourceObject.objects.create(
        cluster=elsewhere, kind="RolloutPolicy", namespace="vision", name="careful", uid="1", acted=1
    )
    followed.apply(ROLLOUT_POLICY, "careful", {"steps": [{"weight": 50}]})
    followed.until(
        lambda: "object vision/careful on cluster elsewhere" in followed.why(ROLLOUT_POLICY, "careful", "Ready"),
        "the refusal",
    )
    first.delete()
    followed.apply(ROLLOUT_POLICY, "careful", {"steps": [{"weight": 51}]})
    followed.until(lambda: "is there already" in followed.why(ROLLOUT_POLICY, "careful", "Ready"), "that of the API")
    followed.apply(ROLLOUT_POLICY, "careful", {"steps": [{"weight": 51}]}, **{"take-over": "true"})
    followed.until(lambda: RolloutPolicy.objects.get().document["steps"][0]["weight"] == 51, "the policy of the object")
    followed.apply(ROLLOUT_POLICY, "careful", {"steps": [{"weight": 51, "hold": "soon"}]}, **{"take-over": "true"})
    followed.until(lambda: "hold" in followed.why(ROLLOUT_POLICY, "careful", "Ready"), "what is wrong with it")
    followed.apply(ROLLOUT_POLICY, "careful", {"steps": [{"weight": 52}]})
    followed.until(lambda: RolloutPolicy.objects.get().document["steps"][0]["weight"] == 52, "it is still its policy")
    followed.delete(ROLLOUT_POLICY, "careful")
    followed.until(lambda: not RolloutPolicy.objects.exists(), "the end of the policy")


def test_only_the_default_team_changes_policies_which_all_teams_use(followed: Followed) -> None:
    Ownership.objects.create(team=team_there("vision"), kind=Owned.NAMESPACE, name="default")
    followed.apply(ROLLOUT_POLICY, "careful", {"steps": [{"weight": 50}]})
    followed.until(
        lambda: "namespace default is that of team vision" in followed.why(ROLLOUT_POLICY, "careful", "Ready"),
        "the refusal",
    )
    assert not RolloutPolicy.objects.exists()


def test_a_version_is_imported_once_and_gets_its_aliases(followed: Followed, settings: Settings) -> None:
    settings.IMPORT_FROM = parse_prefixes(["http://127.0.0.1/models/"])
    said = {"model": "digits", "uri": "http://127.0.0.1/models/v2.onnx", "tags": {"by": "git"}}
    followed.apply(MODEL_VERSION, "digits-2", said)
    followed.until(lambda: followed.get(MODEL_VERSION, "digits-2").get("status", {}).get("phase") == "Importing", "it")
    ordered = ModelImport.objects.get()
    assert (ordered.model, ordered.uri, ordered.created_by) == (
        "digits",
        "http://127.0.0.1/models/v2.onnx",
        "kubernetes:here/default/digits-2",
    )

    version = followed.platform.version(2)
    ModelImport.objects.update(status="IMPORTED", version=version)
    ResourceObject.objects.update(retry_at=timezone.now())
    followed.until(lambda: followed.get(MODEL_VERSION, "digits-2")["status"]["phase"] == "Ready", "the version")
    status = followed.get(MODEL_VERSION, "digits-2")["status"]
    assert (status["uri"], status["digest"]) == ("models:/digits/2", version.digest)

    ModelImport.objects.all().delete()
    followed.apply(MODEL_VERSION, "digits-2", {**said, "aliases": ["champion"]})
    followed.until(lambda: Alias.objects.filter(name="champion", version=version).exists(), "its alias")
    assert not ModelImport.objects.exists(), "its files are not fetched again"
    answer = followed.admin.patch(
        MODEL_VERSION.path("default", "digits-2"),
        json={"spec": {"uri": "http://127.0.0.1/models/v3.onnx"}},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert (answer.status_code, "a version is immutable" in answer.text) == (422, True)
    followed.delete(MODEL_VERSION, "digits-2")
    followed.until(lambda: not ResourceObject.objects.exists(), "the end of its row")
    assert version.model.versions.filter(number=2).exists(), "it stays"


def test_a_version_from_elsewhere_or_of_another_team_is_refused(followed: Followed) -> None:
    followed.apply(MODEL_VERSION, "digits-2", {"model": "digits", "uri": "http://127.0.0.1/secret"})
    followed.until(lambda: "FAIRLEAD_IMPORT_FROM" in followed.why(MODEL_VERSION, "digits-2", "Degraded"), "the refusal")
    Ownership.objects.create(team=team_there("speech"), kind=Owned.MODEL, name="digits")
    followed.apply(MODEL_VERSION, "other-2", {"model": "digits", "uri": "http://127.0.0.1/secret"})
    followed.until(lambda: "no model 'digits'" in followed.why(MODEL_VERSION, "other-2", "Degraded"), "the refusal")
    assert not ModelImport.objects.exists()


def test_the_service_of_an_object_that_is_gone_without_its_finalizer_drains(followed: Followed) -> None:
    followed.apply(INFERENCE_SERVICE, "digits", spec())
    followed.until(InferenceService.objects.exists, "the service")
    followed.until(lambda: followed.get(INFERENCE_SERVICE, "digits")["metadata"].get("finalizers"), "the finalizer")
    followed.delete(INFERENCE_SERVICE, "digits")
    path = INFERENCE_SERVICE.path("default", "digits")
    merge = {"Content-Type": "application/merge-patch+json"}
    followed.admin.patch(path, json={"metadata": {"finalizers": None}}, headers=merge).raise_for_status()
    followed.until(lambda: InferenceService.objects.get().deleting_at is not None, "its drain")
    InferenceService.objects.all().delete()  # as the reconciler does, once the cluster has nothing of it
    followed.until(lambda: not ResourceObject.objects.exists(), "the end of its row")


def test_a_prune_that_deletes_dependents_first_drains_the_service_before_its_object_goes(followed: Followed) -> None:
    """Argo CD prunes so (PrunePropagationPolicy=foreground), and Kubernetes deletes the Rollout at once."""
    followed.apply(ROLLOUT_POLICY, "careful", STEPS)
    followed.until(RolloutPolicy.objects.exists, "the policy")
    followed.platform.version(2)
    followed.apply(INFERENCE_SERVICE, "digits", {**spec(), "rollout": {"policy": "careful"}})
    followed.until(InferenceService.objects.exists, "the service")
    followed.platform.until(lambda: followed.platform.view().phase == "Ready")
    later = spec()
    later["predictor"]["model"]["storageUri"] = "models:/digits/2"
    followed.apply(INFERENCE_SERVICE, "digits", {**later, "rollout": {"policy": "careful"}})
    followed.until(lambda: followed.get(ROLLOUT, "digits"), "the Rollout")

    path, foreground = INFERENCE_SERVICE.path("default", "digits"), {"propagationPolicy": "Foreground"}
    followed.admin.request("DELETE", path, json=foreground).raise_for_status()
    followed.admin.delete(ROLLOUT.path("default", "digits")).raise_for_status()  # as Kubernetes' garbage collector does
    followed.until(lambda: InferenceService.objects.get().deleting_at is not None, "its drain")
    for _ in range(3):
        followed.platform.turn(settle=False)
        followed.controller.turn()
        assert FINALIZER in followed.get(INFERENCE_SERVICE, "digits")["metadata"]["finalizers"]
        assert followed.get(ROLLOUT, "digits") == {}
    InferenceService.objects.all().delete()  # as the reconciler does, once the cluster has nothing of it
    followed.until(
        lambda: FINALIZER not in followed.get(INFERENCE_SERVICE, "digits").get("metadata", {}).get("finalizers", ()),
        "the end of the drain",
    )
