"""KServe's own objects at a real API server, with KServe's schema and the role that following them takes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.roles import Owned
from accounts.models import Ownership
from custom_resources.models import ResourceObject
from custom_resources.views.kserve_status import kserve_status
from deployments.models import InferenceService
from deployments.selectors import service_detail
from integrations.clusters.kubernetes import custom_resources
from integrations.clusters.kubernetes.access import KubeconfigFile
from integrations.clusters.kubernetes.api.resource_types import DEPLOYMENT, EVENT, INFERENCE_SERVICE, KSERVE_SERVICE
from integrations.clusters.kubernetes.custom_resources import KSERVE, CustomResources
from tests.cluster._support.definitions import define_kserve
from tests.cluster.plane import ControlPlane
from tests.custom_resources._support.followed import DEFINITIONS, Followed, following
from tests.integrations._support.runtimes import until
from tests.scenes import team_there

pytestmark = pytest.mark.cluster
ROLE = Path(custom_resources.__file__).with_name("kserve_role.yaml")
USER = "fairlead-kserve"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
MODEL = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
SPEC = {"predictor": {"minReplicas": 1, "model": MODEL}}


@contextmanager
def bound(admin: httpx.Client, user: str) -> Iterator[None]:
    """Bind the two roles to a user."""
    *_, own = yaml.safe_load_all(DEFINITIONS.read_text())
    roles = (own, yaml.safe_load(ROLE.read_text()))
    who = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]
    for role in roles:
        name = role["metadata"]["name"]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
        admin.post(f"{_RBAC}/clusterroles?fieldValidation=Strict", json=role).raise_for_status()
        binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": who}
        admin.post(f"{_RBAC}/clusterrolebindings", json=binding).raise_for_status()
    try:
        yield
    finally:
        for role in roles:
            for path in ("clusterrolebindings", "clusterroles"):
                admin.delete(f"{_RBAC}/{path}/{role['metadata']['name']}")


@pytest.fixture
def followed(db: None, plane: ControlPlane, settings: Settings) -> Iterator[Followed]:
    with plane.client() as admin:
        define_kserve(admin)
        kinds = (INFERENCE_SERVICE, KSERVE_SERVICE)
        file = {"kserveObjects": True}
        with following(plane, settings, kinds=kinds, file=file) as it:
            yield it


def condition(followed: Followed, of_type: str) -> dict[str, Any]:
    found = followed.get(KSERVE_SERVICE, "digits").get("status", {}).get("conditions", ())
    return next((dict(each) for each in found if each["type"] == of_type), {})


def test_an_object_of_kserve_is_a_service_with_a_status_that_its_kind_keeps(followed: Followed) -> None:
    followed.apply(KSERVE_SERVICE, "digits", SPEC, policy="careful")
    followed.until(lambda: "careful" in condition(followed, "Ready").get("message", ""), "the refusal of no policy")
    followed.platform.policy(name="careful")
    followed.apply(KSERVE_SERVICE, "digits", {"predictor": {**SPEC["predictor"], "timeout": 9}}, policy="careful")
    followed.until(InferenceService.objects.exists, "the service")
    service = InferenceService.objects.select_related("policy").get()
    assert service.policy is not None
    assert (service.policy.name, service.request_timeout_s) == ("careful", 9)

    followed.until(lambda: followed.get(KSERVE_SERVICE, "digits")["status"].get("url"), "its address")
    found = followed.get(KSERVE_SERVICE, "digits")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    assert found["status"]["modelStatus"]["transitionStatus"] == "InProgress"
    assert condition(followed, "Ready")["status"] == "False"
    view = service_detail(namespace="default", name="digits", now=timezone.now())
    generation = found["metadata"]["generation"]
    status = kserve_status(view, "", before=found["status"], generation=generation, now=timezone.now())
    assert status == found["status"], "the API server removes nothing of it, so that it is written once"

    followed.apply(INFERENCE_SERVICE, "digits", SPEC)
    followed.until(lambda: "follows the object" in followed.why(INFERENCE_SERVICE, "digits", "Degraded"), "the refusal")
    followed.delete(KSERVE_SERVICE, "digits")
    followed.until(lambda: InferenceService.objects.get().deleting_at is not None, "its drain")
    InferenceService.objects.all().delete()  # as the reconciler does, once the cluster has nothing of it
    followed.until(lambda: not followed.get(KSERVE_SERVICE, "digits"), "the object's end")


def test_where_the_controller_of_kserve_runs_its_objects_are_its_own(followed: Followed) -> None:
    labels = {"control-plane": "kserve-controller-manager"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": "none"}]}}
    deployment = {
        "metadata": {"name": "kserve-controller-manager", "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }
    followed.admin.post(DEPLOYMENT.path("default"), json=deployment).raise_for_status()
    try:
        followed.apply(KSERVE_SERVICE, "digits", SPEC)
        followed.until(ResourceObject.objects.exists, "a look at it")
        events = followed.admin.get(EVENT.path("default"), params={"fieldSelector": "reason=NotTaken"}).json()["items"]
        assert ["default/kserve-controller-manager" in each["message"] for each in events] == [True]
        found = followed.get(KSERVE_SERVICE, "digits")
        assert ("status" in found, "finalizers" in found["metadata"]) == (False, False)
        assert not InferenceService.objects.exists()
    finally:
        followed.admin.delete(DEPLOYMENT.path("default", "kserve-controller-manager")).raise_for_status()
    followed.controller.close()  # another process looks at once, and this one every 30 s
    followed.controller.refresh()
    followed.until(InferenceService.objects.exists, "the service, once that controller is gone")


def test_the_roles_are_enough_to_follow_objects_of_kserve(followed: Followed, plane: ControlPlane) -> None:
    with bound(followed.admin, USER):
        objects = CustomResources(KubeconfigFile(plane.user(USER)), lambda _names: None, [KSERVE])
        try:
            until(lambda: objects.is_known(KSERVE), "KServe's objects are known")
            followed.apply(KSERVE_SERVICE, "digits", SPEC)
            item = until(lambda: objects.get(KSERVE, "default", "digits"), "the object")
            assert item["spec"] == SPEC
            assert objects.kserve_controller() == ""
            objects.set_status(KSERVE, "default", "digits", {"url": "http://there"})
            objects.change(KSERVE, "default", "digits", {"metadata": {"finalizers": ["fairlead.dev/drain"]}})
            about = {"name": "digits.1", "reason": "ServiceReady", "message": "it is ready"}
            objects.event(KSERVE, item, **about, is_warning=False, at=timezone.now())
        finally:
            objects.close()


def test_an_object_of_another_teams_namespace_uses_no_model_of_this_one(followed: Followed) -> None:
    Ownership.objects.create(team=team_there("speech"), kind=Owned.MODEL, name="digits")
    followed.apply(KSERVE_SERVICE, "digits", SPEC)
    followed.until(lambda: "no model 'digits'" in condition(followed, "Ready").get("message", ""), "the refusal")
    assert not InferenceService.objects.exists()
