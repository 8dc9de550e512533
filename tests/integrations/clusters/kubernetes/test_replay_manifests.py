"""What is rendered of a replay, compared with a file that was looked at, and shown to a real API server.

After a wanted change: `make golden`, then read what changed.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client, config

from integrations.clusters.base import Candidate, Patch, Resources
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.manifests import Manifest
from integrations.clusters.kubernetes.manifests.jobs.replay import replay
from integrations.clusters.kubernetes.manifests.names import MANAGED, revision_labels
from integrations.clusters.kubernetes.manifests.network.policies import of_replay
from integrations.clusters.kubernetes.options import GatewayReference, ModelSource, Options, Reach
from tests._support.golden import check_text, plain
from tests._support.structural.layout import written_all
from tests.cluster.plane import ControlPlane

GOLDEN = Path(__file__).parent / "golden" / "replay.out.yaml"
OPTIONS = Options(
    GatewayReference("models", "gateways"),
    "registry.example.com/fairlead/serving-runtime@sha256:0123",
    models_from=ModelSource.REGISTRY,
    monitoring_namespaces=("fairlead",),
    name="production",
    control_plane_url="https://fairlead.example.com",
    payloads_folder="/var/lib/fairlead/payloads/production",
)
CANDIDATE = Candidate(
    "version 3",
    "digits",
    "3",
    "file:///data/artifacts/aaaa",
    {"max_batch_size": 8},
    {"OMP_NUM_THREADS": "2"},
    namespace="team-a",
    service="digits",
    replay="17",
    artifact_digest="sha256:aaaa",
    resources=Resources(2, 1 << 30),
    patches=(
        Patch("patches[0]", "Deployment", merge={"spec": {"template": {"spec": {"priorityClassName": "trials"}}}}),
        Patch(
            "patches[1]",
            "Deployment",
            merge={"spec": {"template": {"metadata": {"annotations": {"mesh.example.com/inject": "false"}}}}},
        ),
    ),
)
OWNER = {"apiVersion": "v1", "kind": "ConfigMap", "name": "fairlead-digits", "uid": "1234", "blockOwnerDeletion": True}


def rendered(candidate: Candidate = CANDIDATE, options: Options = OPTIONS) -> tuple[Manifest, Manifest]:
    job = replay(candidate, "fairlead-replay-0123456789", OWNER, options)
    return job, of_replay({**job, "metadata": {**job["metadata"], "uid": "5678"}}, options)


def test_a_replay_is_as_it_was_rendered() -> None:
    check_text(GOLDEN, "a replay", written_all(plain(list(rendered()))))


def test_it_has_no_label_by_which_replicas_are_found() -> None:
    labels = rendered()[0]["spec"]["template"]["metadata"]["labels"]
    of_a_replica = revision_labels("digits", "digits-00001").items() - MANAGED.items()
    assert of_a_replica & labels.items() == {("app.kubernetes.io/part-of", "digits")}
    assert "fairlead/service" not in labels


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "not allowed"])
def test_models_in_python_answer_only_where_the_operator_allows_them(allowed: bool) -> None:
    job, _ = rendered(options=replace(OPTIONS, allow_python_models=allowed))
    (runtime,) = job["spec"]["template"]["spec"]["containers"]
    assert ("--allow-python-models=true" in runtime["args"]) is allowed


def test_nothing_that_it_answers_is_recorded_and_its_metrics_are_not_scraped() -> None:
    template = rendered()[0]["spec"]["template"]
    assert "tap" not in yaml.safe_dump(template)
    assert "prometheus" not in yaml.safe_dump(template)


@pytest.mark.parametrize(
    ("reach", "namespaces", "who"),
    [
        pytest.param(Reach.DIRECT, ("fairlead",), [["from", "ports"]], id="who reads metrics"),
        pytest.param(Reach.DIRECT, (), [], id="nobody"),
        pytest.param(Reach.API_SERVER, ("fairlead",), [["ports"]], id="the API server, which is in no namespace"),
    ],
)
def test_who_may_reach_it(reach: Reach, namespaces: tuple[str, ...], who: list[list[str]]) -> None:
    _, policy = rendered(options=replace(OPTIONS, reach=reach, monitoring_namespaces=namespaces))
    assert [sorted(each) for each in policy["spec"]["ingress"]] == who


@pytest.mark.cluster
def test_a_strict_api_server_takes_them_and_the_restricted_pod(plane: ControlPlane) -> None:
    namespace = "golden-replay"
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    core = client.CoreV1Api(config.new_client_from_config(str(plane.kubeconfig)))
    core.create_namespace({"metadata": {"name": namespace, "labels": labels}})
    api = Api(plane.kubeconfig)
    job, policy = rendered(replace(CANDIDATE, namespace=namespace))
    for manifest in (job, policy):
        api.apply(manifest, dry_run=True)
    template = job["spec"]["template"]
    spec: dict[str, Any] = {**template["spec"], "serviceAccountName": "default"}
    del spec["priorityClassName"]  # the cluster has none
    core.create_namespaced_pod(namespace, {"metadata": {"name": "one"}, "spec": spec}, dry_run="All")
    api.close()
