"""Services as objects of a cluster: a canary is driven by applies alone, and a deleted object drains."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from integrations.clusters.kubernetes import custom_resources
from integrations.clusters.kubernetes.api.resource_types import EVENT, INFERENCE_SERVICE, ROLLOUT, ROLLOUT_POLICY, Kind
from tests.cluster._support.definitions import define
from tests.cluster.plane import ControlPlane
from tests.e2e.harness import until
from tests.e2e.kubernetes import KubernetesPlatform, on_kubernetes

pytestmark = [pytest.mark.e2e, pytest.mark.cluster]
DEFINITIONS = Path(custom_resources.__file__).with_name("crds.yaml")
WAIT_S = 300
POLICY = {"strategy": "canary", "steps": [{"weight": 20, "pause": True}], "scaleDownDelay": "1s"}


class Objects:
    """The objects of a namespace, as an administrator of the cluster has them."""

    def __init__(self, admin: httpx.Client) -> None:
        self._admin = admin

    def apply(self, kind: Kind, name: str, spec: dict[str, Any], **metadata: Any) -> httpx.Response:
        """Apply an object as `kubectl apply --server-side` does."""
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **metadata}, "spec": spec}
        return self._admin.patch(
            kind.path("default", name),
            params={"fieldManager": "git", "force": "true"},
            content=yaml.safe_dump(body),
            headers={"Content-Type": "application/apply-patch+yaml"},
        )

    def get(self, kind: Kind, name: str) -> dict[str, Any] | None:
        answer = self._admin.get(kind.path("default", name))
        return None if answer.status_code == 404 else dict(answer.raise_for_status().json())

    def condition(self, kind: Kind, name: str, of_type: str) -> dict[str, Any]:
        """Return a condition of the object's present generation; empty without it."""
        found = self.get(kind, name) or {"metadata": {}, "status": {}}
        for each in found.get("status", {}).get("conditions", ()):
            if each["type"] == of_type and each["observedGeneration"] == found["metadata"]["generation"]:
                return dict(each)
        return {}

    def delete(self, kind: Kind, name: str) -> None:
        self._admin.delete(kind.path("default", name)).raise_for_status()

    def events(self, name: str) -> set[str]:
        """Return the reasons of the Events about an object."""
        found = self._admin.get(EVENT.path("default"), params={"fieldSelector": f"involvedObject.name={name}"}).json()
        return {each["reason"] for each in found["items"] if each["involvedObject"]["kind"] == "InferenceService"}


@pytest.fixture(scope="module")
def platform(
    plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory, models: Path
) -> Iterator[KubernetesPlatform]:
    with plane.client() as admin:
        *kinds, _ = yaml.safe_load_all(DEFINITIONS.read_text())
        for each in kinds:
            define(admin, each)
    with on_kubernetes(plane, tmp_path_factory.mktemp("e2e")) as running:
        for name in ("v1", "v2"):
            done = running.fairlead(
                "models", "push", str(models / f"{name}.onnx"), "--name", "digits", "--wait", check=False
            )
            assert done.returncode == 0, done.stderr + done.stdout
        running.change(
            "from django.utils import timezone\nfrom clusters.models import Cluster\n"
            "from clusters.services.clusters import cluster_apply\n"
            f"file = Cluster.objects.get(name={running.cluster!r}).document\n"
            "file['customResources'] = True\n"
            "cluster_apply(document=file, name=None, actor='test', now=timezone.now())"
        )
        yield running


@pytest.fixture
def objects(platform: KubernetesPlatform) -> Iterator[Objects]:
    with platform.harness.plane.client() as admin:
        yield Objects(admin)


def spec(version: int, **more: Any) -> dict[str, Any]:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/digits/{version}"}
    return {"predictor": {"minReplicas": 1, "model": model}, "rollout": {"policy": "by-hand"}, **more}


def test_a_service_is_made_rolled_out_and_removed_by_its_object_alone(
    platform: KubernetesPlatform, objects: Objects
) -> None:
    def is_so(kind: Kind, name: str, of_type: str, status: str = "True") -> bool:
        return objects.condition(kind, name, of_type).get("status") == status

    def phase() -> object:
        return (objects.get(ROLLOUT, "digits") or {}).get("status", {}).get("phase")

    assert objects.apply(INFERENCE_SERVICE, "digits", spec(1)).is_success
    until(lambda: is_so(INFERENCE_SERVICE, "digits", "Degraded"), WAIT_S, "the refusal of an unknown policy")
    refused = objects.condition(INFERENCE_SERVICE, "digits", "Degraded")
    assert (refused["reason"], "by-hand" in refused["message"]) == ("Refused", True)

    assert objects.apply(ROLLOUT_POLICY, "by-hand", POLICY).is_success
    until(lambda: is_so(ROLLOUT_POLICY, "by-hand", "Ready"), WAIT_S, "the policy")
    until(lambda: is_so(INFERENCE_SERVICE, "digits", "Ready"), WAIT_S, "the service")
    found = objects.get(INFERENCE_SERVICE, "digits")
    assert found is not None
    assert found["status"]["modelVersion"] == "1"
    assert found["status"]["url"].endswith("/serving/default/digits/v2/models/digits")

    assert platform.fairlead("services", "restart", "digits").returncode == 0
    stopped = platform.fairlead("services", "stop", "digits", check=False)
    assert stopped.returncode != 0
    assert "follows the object InferenceService default/digits on cluster production" in stopped.stderr

    assert objects.apply(INFERENCE_SERVICE, "digits", spec(2)).is_success
    until(lambda: phase() == "Paused", WAIT_S, "the pause")
    assert is_so(INFERENCE_SERVICE, "digits", "Progressing")
    assert objects.apply(ROLLOUT, "digits", {"action": "promote"}).is_success
    until(lambda: is_so(INFERENCE_SERVICE, "digits", "Promoted"), WAIT_S, "the promotion")
    until(lambda: phase() == "Healthy", WAIT_S, "the same of the Rollout")  # which is written after it
    rollout, found = objects.get(ROLLOUT, "digits"), objects.get(INFERENCE_SERVICE, "digits")
    assert rollout is not None
    assert found is not None
    assert (rollout["spec"], found["status"]["modelVersion"]) == ({}, "2")
    assert rollout["status"]["lastAction"]["message"] == ""
    until(lambda: {"ServiceReady", "RolloutHealthy"} <= objects.events("digits"), WAIT_S, "Events")

    objects.delete(INFERENCE_SERVICE, "digits")
    until(lambda: objects.get(INFERENCE_SERVICE, "digits") is None, WAIT_S, "the end of the object")
    assert platform.replicas("digits-00002") == 0
    assert "there is no service" in platform.fairlead("services", "show", "digits", check=False).stderr


def test_what_no_spec_may_say_is_refused_by_the_api_server(objects: Objects, platform: KubernetesPlatform) -> None:
    assert platform.cluster
    answer = objects.apply(INFERENCE_SERVICE, "other", spec(1, cluster="elsewhere"))
    assert (answer.status_code, "leave spec.cluster out" in answer.text) == (422, True)
    answer = objects.apply(INFERENCE_SERVICE, "other", {"rollout": {"policy": "by-hand"}})
    assert answer.status_code == 422
