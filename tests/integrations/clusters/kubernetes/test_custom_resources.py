"""Custom resources at a real API server, with the role of their file and no other."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from django.utils import timezone

from common.errors import Conflict, NotPermitted
from integrations.clusters.kubernetes import custom_resources
from integrations.clusters.kubernetes.access import KubeconfigFile
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import (
    CUSTOM,
    EVENT,
    INFERENCE_SERVICE,
    ROLLOUT_POLICY,
    SERVICE,
    Kind,
)
from integrations.clusters.kubernetes.custom_resources import CustomResources
from tests.cluster._support.definitions import define
from tests.cluster.plane import ControlPlane
from tests.custom_resources._support.specs import POLICIES, SERVICES
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
DEFINITIONS = Path(custom_resources.__file__).with_name("crds.yaml")
USER, NARROW, KIND = "fairlead-objects", "fairlead-narrow", "InferenceService"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
SECRET = {"secretKeyRef": {"name": "secrets", "key": "a"}}
MODEL = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
SPEC = {"predictor": {"model": MODEL}}


@pytest.fixture(scope="module")
def admin(plane: ControlPlane) -> Iterator[httpx.Client]:
    """Give an administrator, after they bound the role to a user."""
    *kinds, role = yaml.safe_load_all(DEFINITIONS.read_text())
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER}
    who = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": USER}]
    binding = {"metadata": {"name": USER}, "roleRef": reference, "subjects": who}
    with plane.client() as administrator:
        for each in kinds:
            define(administrator, each)
        for path, body in (("clusterroles", role), ("clusterrolebindings", binding)):
            administrator.post(f"{_RBAC}/{path}?fieldValidation=Strict", json=body).raise_for_status()
        yield administrator
        for path in ("clusterrolebindings", "clusterroles"):
            administrator.delete(f"{_RBAC}/{path}/{USER}").raise_for_status()


def test_the_role_is_enough_to_follow_objects_and_for_nothing_else(admin: httpx.Client, plane: ControlPlane) -> None:
    reported: set[tuple[str, str]] = set()
    objects = CustomResources(KubeconfigFile(plane.user(USER)), reported.update)
    try:
        until(lambda: all(map(objects.is_known, custom_resources.OWN)), "all kinds are known")
        body = {"apiVersion": INFERENCE_SERVICE.api_version, "kind": KIND, "metadata": {"name": "one"}, "spec": SPEC}
        admin.post(INFERENCE_SERVICE.path("default"), json=body).raise_for_status()
        until(lambda: ("default", "one") in reported, "the object is reported")
        found = objects.get(KIND, "default", "one")
        assert found is not None
        assert found["spec"] == SPEC
        assert objects.names() == {("default", "one")}

        objects.set_status(KIND, "default", "one", {"phase": "Ready", "url": "http://there"})
        objects.set_status(KIND, "default", "one", {"phase": "Pending"})
        status = admin.get(INFERENCE_SERVICE.path("default", "one")).json()["status"]
        assert status == {"phase": "Pending"}, "what a status no longer says is gone"
        newest = objects.get(KIND, "default", "one")
        assert newest is not None
        assert newest["status"] == status, "own writes are known at once"

        old = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"], "finalizers": ["fairlead.dev/drain"]}
        }
        with pytest.raises(Conflict):
            objects.change(KIND, "default", "one", old)
        objects.change(KIND, "default", "one", {"metadata": {"finalizers": []}})
        objects.change(KIND, "default", "absent", {"spec": {}})

        for _ in range(2):
            made = {"metadata": {"namespace": "default", "name": "one"}, "spec": {}}
            objects.create("Rollout", made)
            about = {"name": "one.1", "reason": "ServiceReady", "message": "it is ready"}
            objects.event(KIND, newest, **about, is_warning=False, at=timezone.now())
        assert admin.get(EVENT.path("default", "one.1")).json()["involvedObject"]["name"] == "one"
        until(lambda: objects.get("Rollout", "default", "one") is not None, "the rollout")

        admin.delete(INFERENCE_SERVICE.path("default", "one")).raise_for_status()
        until(lambda: objects.get(KIND, "default", "one") is None, "the object's end")
    finally:
        objects.close()
    api = Api(plane.user(USER))
    with pytest.raises(NotPermitted):
        api.list(SERVICE, "default", {})
    api.close()


def test_a_role_in_one_namespace_is_enough_to_follow_its_objects(admin: httpx.Client, plane: ControlPlane) -> None:
    binding = f"{_RBAC}/namespaces/default/rolebindings"
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": USER}
    who = [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": NARROW}]
    admin.post(binding, json={"metadata": {"name": NARROW}, "roleRef": reference, "subjects": who}).raise_for_status()
    reported: set[tuple[str, str]] = set()
    objects = CustomResources(KubeconfigFile(plane.user(NARROW)), reported.update)
    try:
        objects.follow({"default", "kube-system"})
        until(lambda: objects.is_known(KIND, "default"), "objects of the namespace are known")
        body = {"apiVersion": INFERENCE_SERVICE.api_version, "kind": KIND, "metadata": {"name": "two"}, "spec": SPEC}
        admin.post(INFERENCE_SERVICE.path("default"), json=body).raise_for_status()
        until(lambda: ("default", "two") in reported, "the object is reported")
        assert not objects.is_known(KIND)
        assert not objects.is_known(KIND, "kube-system"), "where nothing is permitted nothing counts as gone"
        assert objects.problems() == ()
        objects.set_status(KIND, "default", "two", {"phase": "Pending"})
    finally:
        objects.close()
        admin.delete(INFERENCE_SERVICE.path("default", "two")).raise_for_status()
        admin.delete(f"{binding}/{NARROW}").raise_for_status()


def _made(admin: httpx.Client, kind: Kind, spec: dict[str, object]) -> httpx.Response:
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "tried"}, "spec": spec}
    return admin.post(f"{kind.path('default')}?fieldValidation=Strict&dryRun=All", json=body)


def test_the_api_server_takes_every_field_of_the_files(admin: httpx.Client) -> None:
    for kind, specs in ((INFERENCE_SERVICE, SERVICES), (ROLLOUT_POLICY, POLICIES)):
        for spec in specs:
            answer = _made(admin, kind, spec)
            assert answer.is_success, answer.text
            assert answer.json()["spec"] == spec


@pytest.mark.parametrize(
    ("kind", "spec", "why"),
    [
        (INFERENCE_SERVICE, {"predictor": {"model": MODEL, "minReplica": 2}}, 'unknown field "spec.predictor.minRep'),
        (
            INFERENCE_SERVICE,
            {"predictor": {"model": {**MODEL, "env": [{"name": "A", "value": "1", "valueFrom": SECRET}]}}},
            "one of value and valueFrom",
        ),
        (
            INFERENCE_SERVICE,
            {"predictor": {"model": {**MODEL, "resources": {"limits": {"memory": "1Gi"}}}}},
            "limits are of cpu and nvidia.com/",
        ),
        (INFERENCE_SERVICE, {**SPEC, "patches": [{"target": {"kind": "Pod"}}]}, "one of json6902 and merge"),
        (
            INFERENCE_SERVICE,
            {**SPEC, "placement": {"sharing": True, "latency": {"p99Ms": 9}}},
            "sharing and placement.latency exclude",
        ),
        (ROLLOUT_POLICY, {"steps": [{"weigth": 10}]}, 'unknown field "spec.steps[0].weigth"'),
        (ROLLOUT_POLICY, {"strategy": "shadow", "steps": [{"mirror": 10}]}, "only steps of a canary have mirror"),
        (ROLLOUT_POLICY, {"steps": [{"match": [{"header": "x-a", "exact": "a", "prefix": "a"}]}]}, "one of exact"),
        (ROLLOUT_POLICY, {"sessionAffinity": {}, "steps": []}, "one of header and cookie"),
        (ROLLOUT_POLICY, {"onDeadline": "abort", "steps": []}, "without a deadline"),
        (
            ROLLOUT_POLICY,
            {"steps": [{"analysis": {"metrics": [{"name": "a", "query": "a", "min": 1, "maxIncreasePercent": 1}]}}]},
            "one kind of limit",
        ),
    ],
)
def test_the_api_server_refuses_what_no_file_may_say(
    admin: httpx.Client, kind: Kind, spec: dict[str, object], why: str
) -> None:
    answer = _made(admin, kind, spec)
    assert answer.status_code in (400, 422), answer.text
    assert why in answer.json()["message"]


def test_a_cluster_without_the_kinds_has_no_objects(plane: ControlPlane) -> None:
    """Its watches wait for the kinds, and none of them is a problem."""
    with plane.client() as administrator:
        for kind in CUSTOM:
            named = f"{kind.plural}.fairlead.dev"
            administrator.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{named}")
            until(lambda kind=kind: administrator.get(kind.path("default")).status_code == 404, f"no {named}")
    objects = CustomResources(KubeconfigFile(plane.kubeconfig), lambda _names: None)
    try:
        until(lambda: all(map(objects.is_known, custom_resources.OWN)), "all kinds are known")
        assert objects.names() == set()
        assert objects.problems() == ()
    finally:
        objects.close()
