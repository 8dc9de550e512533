"""A custom predictor runs what its author likes, and nothing more: no other image, no identity, no variable of ours."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import FairleadError, InvalidInput
from common.images import parse_registries
from deployments.domain.service_file import check_env, parse_service
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.manifests.images import refuse_images
from tests.integrations._support.manifests import given

IMAGE = f"example.org/predictor@sha256:{1:064}"
SECURE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}


def read(**container: Any) -> None:
    file = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"predictor": {"containers": [{"image": IMAGE, **container}]}},
    }
    check_env(parse_service(file), is_code=False)


@pytest.mark.parametrize(
    "container",
    [
        pytest.param({"image": "example.org/predictor"}, id="no digest"),
        pytest.param({"image": "example.org/predictor:1"}, id="a tag"),
        pytest.param({"image": f"example.org/predictor@sha256:{1:063}"}, id="a short digest"),
        pytest.param({"image": f"example.org/a@example.org/b@sha256:{1:064}"}, id="two names"),
        pytest.param({"image": f"example.org/../predictor@sha256:{1:064}"}, id="up a folder"),
        pytest.param({"securityContext": {"privileged": True}}, id="privileged"),
        pytest.param({"securityContext": {"runAsUser": 0}}, id="root"),
        pytest.param({"volumeMounts": [{"name": "models", "mountPath": "/mnt"}]}, id="a volume"),
        pytest.param({"envFrom": [{"secretRef": {"name": "x"}}]}, id="a whole secret"),
        pytest.param({"lifecycle": {"preStop": {"exec": {"command": ["sleep", "1"]}}}}, id="a hook"),
        pytest.param({"ports": [{"containerPort": 9000, "hostPort": 9000}]}, id="a port of the node"),
        pytest.param({"ports": [{"containerPort": 8002}]}, id="in place of our counters"),
        pytest.param({"readinessProbe": {"httpGet": {"path": "/x", "host": "10.0.0.1"}}}, id="a probe of another host"),
        pytest.param({"readinessProbe": {"httpGet": {"path": "/x\r\nHost: y"}}}, id="a second header in a path"),
        pytest.param({"readinessProbe": {"httpGet": {"path": "/x y"}}}, id="a blank in a path"),
        pytest.param({"env": [{"name": "FAIRLEAD_REVISION", "value": "other-00001"}]}, id="a variable of ours"),
        pytest.param({"env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, id="devices of others"),
        pytest.param({"env": [{"name": "STORAGE_URI", "value": "s3://x"}]}, id="files of KServe's"),
    ],
)
def test_what_would_be_more_is_refused(container: dict[str, Any]) -> None:
    read()
    with pytest.raises(FairleadError):
        read(**container)


def test_its_pods_are_as_closed_as_those_of_models_whatever_is_stored() -> None:
    desired, shares, options = given("custom-predictor")
    for manifest in render(desired, shares, options):
        if manifest["kind"] != "Deployment":
            continue
        pod = manifest["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            assert container["securityContext"] == SECURE
            env = {each["name"]: each.get("value") for each in container["env"]}
            assert env["FAIRLEAD_REVISION"] == manifest["metadata"]["name"]
            assert "PATH" not in env
        mounts = [{mount["name"] for mount in container["volumeMounts"]} for container in pod["containers"]]
        assert not mounts[0] & mounts[1], "the proxy reads no file that the container writes"


def test_the_driver_lets_images_of_allowed_registries_through_only() -> None:
    desired, shares, options = given("custom-predictor")
    refuse_images(
        render(desired, shares, options), replace(options, allowed_registries=parse_registries(["example.org"]))
    )
    with pytest.raises(InvalidInput, match="this installation allows those of"):
        refuse_images(
            render(desired, shares, options), replace(options, allowed_registries=parse_registries(["example.com"]))
        )
