"""Service files that reach for the nodes, accounts and labels of others: by fields of their pods.

Aimed at the parser, the check against a cluster's file and what is rendered.
"""

import json
from dataclasses import replace
from typing import Any

import pytest

from clusters.domain.pods import AllowedPods, check_pod_fields
from common.errors import InvalidInput
from deployments.domain.service_file import parse_service
from integrations.clusters.base import QUEUE, PodFields, Resources
from integrations.clusters.kubernetes.manifests import render
from tests._support.golden import BASE
from tests.integrations._support.manifests import given

ALLOWED = AllowedPods(
    service_accounts=("models",),
    priority_classes=("serving",),
    image_pull_secrets=("registry",),
    node_selector={"pool": ("models",)},
    toleration_keys=("dedicated",),
    label_prefixes=("example.com",),
    queue_names=("models",),
)
ATTACKS: dict[str, dict[str, Any]] = {
    "an account that begins like an allowed one": {"serviceAccountName": "models-admin"},
    "an account of another namespace": {"serviceAccountName": "kube-system/models"},
    "the old name of the account": {"serviceAccount": "models"},
    "a class that preempts all": {"priorityClassName": "system-node-critical"},
    "a priority by number": {"priority": 2_000_000_000},
    "a secret of another team": {"imagePullSecrets": [{"name": "registry"}, {"name": "others"}]},
    "a node by its name": {"nodeName": "control-plane-0"},
    "a node by its label": {"nodeSelector": {"kubernetes.io/hostname": "control-plane-0"}},
    "another value of an allowed key": {"nodeSelector": {"pool": "system"}},
    "a key and value that look allowed": {"nodeSelector": {"pool: models": ""}},
    "a node by affinity": {"affinity": {"nodeAffinity": {}}},
    "all taints": {"tolerations": [{"operator": "Exists"}]},
    "all taints by an empty key": {"tolerations": [{"key": "", "operator": "Exists"}]},
    "the taint of a control plane": {"tolerations": [{"key": "node-role.kubernetes.io/control-plane"}]},
    "the label by which Fairlead routes": {"labels": {"fairlead/service": "victim"}},
    "a subdomain of Kubernetes": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}},
    "a label that a cloud's webhook trusts": {"labels": {"azure.workload.identity/use": "true"}},
    "a prefix that ends like an allowed one": {"labels": {"evil-example.com/a": "b"}},
    "a prefix in other letters": {"labels": {"Fairlead/service": "victim"}},
    "a queue of another team": {"labels": {"kueue.x-k8s.io/queue-name": "research"}},
    "no queue at all": {"labels": {"kueue.x-k8s.io/queue-name": ""}},
    "a queue in other letters": {"labels": {"Kueue.x-k8s.io/queue-name": "models"}},
    "a queue's priority": {"labels": {"kueue.x-k8s.io/priority-class": "first"}},
    "a group that a queue admits at once": {"labels": {"kueue.x-k8s.io/pod-group-name": "victim"}},
    "a line break in a label": {"labels": {"team\n": "a"}},
    "a line break in a value": {"labels": {"team": "a\n"}},
    "the host's network": {"hostNetwork": True},
}


@pytest.mark.parametrize("fields", ATTACKS.values(), ids=ATTACKS)
def test_a_service_gets_nothing_that_its_cluster_does_not_allow(fields: dict[str, Any]) -> None:
    model = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1"}
    file = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "digits"},
        "spec": {"predictor": {"model": model, **fields}},
    }
    with pytest.raises(InvalidInput) as caught:
        check_pod_fields(ALLOWED, parse_service(file).pod, "eu")
    assert (caught.value.field or "").startswith(f"spec.predictor.{next(iter(fields))}"), caught.value


def test_a_prefix_that_is_allowed_opens_no_queue() -> None:
    allowed = replace(ALLOWED, label_prefixes=("kueue.x-k8s.io",))
    with pytest.raises(InvalidInput, match="does not list; name models"):
        check_pod_fields(allowed, PodFields(labels={QUEUE: "research"}), "eu")
    check_pod_fields(allowed, PodFields(labels={QUEUE: "models"}), "eu")


def test_a_product_is_data_in_a_claim() -> None:
    desired, shares, options = given("claims")
    hostile = ("""A30"] || true || 'x' in ['""", "A30\\", 'x\n"')
    resources = Resources(accelerator="nvidia.com/gpu", products=hostile)
    revision = replace(desired.revisions[0], resources=resources)
    made = render(replace(desired, revisions=(revision,)), shares, options)
    (template,) = (each for each in made if each["kind"] == "ResourceClaimTemplate")
    (selector,) = template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["selectors"]
    expression = selector["cel"]["expression"]
    assert json.loads(expression.partition(" in ")[2]) == sorted(hostile)
    assert "\n" not in expression


def test_labels_change_no_selector_and_none_of_the_drivers() -> None:
    desired, shares, options = given(BASE)
    labels = {"team": "a", "fairlead/service": "victim", "app.kubernetes.io/managed-by": "me"}
    hostile = replace(
        desired, revisions=tuple(replace(each, pod=PodFields(labels=labels)) for each in desired.revisions)
    )
    for before, after in zip(render(desired, shares, options), render(hostile, shares, options), strict=True):
        if before["kind"] == "Deployment":
            assert after["spec"]["selector"] == before["spec"]["selector"]
            own = before["spec"]["template"]["metadata"]["labels"]
            assert after["spec"]["template"]["metadata"]["labels"] == {"team": "a", **own}
        else:
            assert after == before
