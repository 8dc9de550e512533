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
from integrations.clusters.kubernetes.api.resource_types import EVENT, INFERENCE_SERVICE, SERVICE
from integrations.clusters.kubernetes.custom_resources import CustomResources
from tests.cluster._support.definitions import define
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
DEFINITIONS = Path(custom_resources.__file__).with_name("crds.yaml")
USER, KIND = "fairlead-objects", "InferenceService"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
SPEC = {"predictor": {"model": {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}}}


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
        until(lambda: all(map(objects.is_known, custom_resources.KINDS)), "all kinds are known")
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


def test_a_cluster_without_the_kinds_has_no_objects(plane: ControlPlane) -> None:
    """Its watches wait for the kinds, and none of them is a problem."""
    with plane.client() as administrator:
        for kind in custom_resources.KINDS.values():
            named = f"{kind.plural}.fairlead.dev"
            administrator.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{named}")
            until(lambda kind=kind: administrator.get(kind.path("default")).status_code == 404, f"no {named}")
    objects = CustomResources(KubeconfigFile(plane.kubeconfig), lambda _names: None)
    try:
        until(lambda: all(map(objects.is_known, custom_resources.KINDS)), "all kinds are known")
        assert objects.names() == set()
        assert objects.problems() == ()
    finally:
        objects.close()
