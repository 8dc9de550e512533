"""Variables of pods whose values are in Secrets of their namespace."""

from dataclasses import replace

import pytest
from kubernetes import client, config

from integrations.clusters.base import Candidate, SecretKeyRef
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.jobs.replay import replay
from tests.cluster.plane import ControlPlane
from tests.integrations._support.manifests import given

SECRET_ENV = {"MODEL_TOKEN": SecretKeyRef("hugging-face", "token")}
ENTRY = {"name": "MODEL_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hugging-face", "key": "token"}}}
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "fairlead-digits", "uid": "1234"}


def rendered(namespace: str = "team-a") -> list[Manifest]:
    """Return what is rendered of a service whose predictor and transformer have such a variable."""
    desired, shares, options = given("transformer")
    revisions = tuple(
        replace(
            each,
            env={"TZ": "UTC"},
            secret_env={**SECRET_ENV, "LD_PRELOAD": SecretKeyRef("a", "b")},
            transformer=each.transformer
            and replace(each.transformer, secret_env={"MODEL_NAME": SecretKeyRef("a", "b")}),
        )
        for each in desired.revisions
    )
    return render(replace(desired, namespace=namespace, revisions=revisions), shares, options)


def containers(manifests: list[Manifest]) -> list[Manifest]:
    pods = [each["spec"]["template"]["spec"] for each in manifests if each["kind"] == "Deployment"]
    return [container for pod in pods for container in (*pod.get("initContainers", ()), *pod["containers"])]


def test_the_server_and_the_transformer_have_references_and_the_step_that_fetches_has_none() -> None:
    found = {each["name"]: each.get("env", []) for each in containers(rendered())}
    assert ENTRY in found["runtime"]
    assert {"name": "TZ", "value": "UTC"} in found["runtime"]
    assert [each["name"] for each in found["runtime"]] == sorted(each["name"] for each in found["runtime"])
    named = [each for each in found["transformer"] if each["name"] == "MODEL_NAME"]
    assert named == [{"name": "MODEL_NAME", "valueFrom": {"secretKeyRef": {"name": "a", "key": "b"}}}]
    assert "valueFrom" not in str(found["prepare"])
    assert "LD_PRELOAD" not in str(found), "refused names are left out of stored revisions"


def test_a_replay_has_the_references_of_its_service() -> None:
    _, _, options = given("base")
    candidate = Candidate(
        "version 3", "digits", "3", "file:///var/lib/fairlead/artifacts/aaaa", secret_env=SECRET_ENV, replay="1"
    )
    (runtime,) = replay(candidate, "fairlead-replay-1", OWNER, options)["spec"]["template"]["spec"]["containers"]
    assert ENTRY in runtime["env"]


@pytest.mark.cluster
def test_a_strict_api_server_takes_them(plane: ControlPlane) -> None:
    core = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    core.create_namespace({"metadata": {"name": "secret-env"}})
    api = Api(plane.kubeconfig)
    deployments = [each for each in rendered("secret-env") if each["kind"] == "Deployment"]
    assert deployments
    for manifest in deployments:
        api.apply(manifest, dry_run=True)
