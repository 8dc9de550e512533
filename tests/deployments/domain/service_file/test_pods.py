"""Pod fields of a service file's predictor: what is read, kept, written back and refused."""

import copy
from typing import Any

import pytest

from clusters.domain.pods import AllowedPods, check_pod_fields
from common.errors import InvalidInput
from deployments.domain.service_file import (
    content_of,
    file_saying,
    parse_service,
    pod_json,
    refuse_on,
    stored_pod,
)
from integrations.clusters.base import PodFields, Spread
from tests.deployments._support.service_files import FILE

ZONE = "topology.kubernetes.io/zone"
ALL: dict[str, Any] = {
    "labels": {"team": "vision", "example.com/cost-center": "42"},
    "serviceAccountName": "models",
    "nodeSelector": {"pool": "models"},
    "tolerations": [
        {"key": "dedicated", "operator": "Equal", "value": "models", "effect": "NoSchedule"},
        {"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
    ],
    "priorityClassName": "serving",
    "imagePullSecrets": [{"name": "registry"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}],
}
FIELDS = PodFields(
    labels=ALL["labels"],
    service_account="models",
    node_selector={"pool": "models"},
    tolerations=tuple(ALL["tolerations"]),
    priority_class="serving",
    image_pull_secrets=("registry",),
    spread=(Spread(ZONE),),
    cpu_limit=2.5,
)
EVERYTHING = AllowedPods(
    ("models",), ("serving",), ("registry",), {"pool": ("models",)}, ("dedicated", "spot"), ("example.com",)
)


def saying(limit: object = None, **fields: Any) -> dict[str, Any]:
    document = copy.deepcopy(FILE)
    document["spec"]["predictor"] |= fields
    if limit is not None:
        document["spec"]["predictor"]["model"]["resources"] = {"limits": {"cpu": limit}}
    return document


def test_fields_are_read_and_kept() -> None:
    found = parse_service(saying("2500m", **ALL)).pod
    assert found == FIELDS
    assert stored_pod(pod_json(found)) == found
    assert {name: value for name, value in pod_json(found).items() if name != "cpuLimit"} == ALL


def test_a_file_without_them_stores_nothing() -> None:
    assert pod_json(parse_service(FILE).pod) == {}
    assert stored_pod({}) == PodFields()


def test_they_are_written_into_a_file_and_taken_out_of_it() -> None:
    full, plain = parse_service(saying(2.5, **ALL)), parse_service(FILE)
    assert parse_service(file_saying(FILE, plain, content_of(full))).pod == FIELDS
    assert parse_service(file_saying(saying(2.5, **ALL), full, content_of(plain))).pod == PodFields()


@pytest.mark.parametrize(
    ("wrong", "field", "sentence"),
    [
        ({"labels": {"fairlead/service": "other"}}, "labels", "which Fairlead or Kubernetes sets"),
        ({"labels": {"app.kubernetes.io/name": "other"}}, "labels", "which Fairlead or Kubernetes sets"),
        ({"labels": {"pod-security.k8s.io/x": "1"}}, "labels", "which Fairlead or Kubernetes sets"),
        ({"labels": {"a b": "1"}}, "labels", "is no label of Kubernetes"),
        ({"labels": {"a": 1}}, "labels", "is no label of Kubernetes"),
        ({"labels": ["a"]}, "labels", "is no object of at most 20 texts"),
        ({"annotations": {"a": "1"}}, "annotations", "are left to patches"),
        ({"serviceAccountName": "../root"}, "serviceAccountName", "no name of a Kubernetes object"),
        ({"serviceAccountName": ["a"]}, "serviceAccountName", "expected a text"),
        ({"priorityClassName": "A"}, "priorityClassName", "no name of a Kubernetes object"),
        ({"imagePullSecrets": ["registry"]}, "imagePullSecrets[0]", "expected an object"),
        ({"imagePullSecrets": [{}]}, "imagePullSecrets[0].name", "is missing"),
        ({"nodeSelector": {"pool": True}}, "nodeSelector", "is no label of Kubernetes"),
        ({"tolerations": [{"operator": "Exists"}]}, "tolerations[0].key", "is missing"),
        ({"tolerations": [{"key": ""}]}, "tolerations[0].key", "one without a key tolerates all"),
        ({"tolerations": [{"key": "a", "operator": "Lt"}]}, "tolerations[0].operator", "expected Equal or Exists"),
        ({"tolerations": [{"key": "a", "effect": "No"}]}, "tolerations[0].effect", "expected NoSchedule or"),
        ({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}, "tolerations[0].value", "leave it out"),
        ({"tolerations": [{"key": "a", "tolerationSeconds": 1}]}, "tolerations[0].tolerationSeconds", "NoExecute"),
        ({"tolerations": [{"key": "a"}] * 21}, "tolerations", "a service may have 20"),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "rack"}]},
            "topologySpreadConstraints[0].topologyKey",
            f"expected kubernetes.io/hostname or {ZONE}",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "labelSelector": {}}]},
            "topologySpreadConstraints[0].labelSelector",
            "Fairlead selects by itself",
        ),
        ({"affinity": {}}, "affinity", "is not a field that Fairlead can honour here"),
        ({"hostNetwork": True}, "hostNetwork", "is not a field that Fairlead can honour here"),
    ],
)
def test_wrong_fields_are_refused_by_name(wrong: dict[str, Any], field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_service(saying(**wrong))
    assert (caught.value.field, sentence in caught.value.message) == (f"spec.predictor.{field}", True), caught.value


def test_a_limit_below_the_request_is_refused() -> None:
    document = saying("500m")
    document["spec"]["predictor"]["model"]["resources"]["requests"] = {"cpu": 1}
    with pytest.raises(InvalidInput, match=r"limits\.cpu is 0\.5, less than the requested CPU, which is 1"):
        parse_service(document)


def test_replicas_are_spread_by_one_field() -> None:
    document = saying(topologySpreadConstraints=ALL["topologySpreadConstraints"])
    document["spec"]["placement"] = {"replicas": "spread"}
    with pytest.raises(InvalidInput, match="leave out one of them"):
        parse_service(document)


@pytest.mark.parametrize("name", ALL)
def test_this_machine_refuses_each(name: str) -> None:
    with pytest.raises(InvalidInput, match=rf"spec\.predictor\.{name} is for services on Kubernetes"):
        refuse_on("local", parse_service(saying(**{name: ALL[name]})))


def test_this_machine_refuses_a_cpu_limit() -> None:
    with pytest.raises(InvalidInput, match=r"resources\.limits\.cpu is for services on Kubernetes"):
        refuse_on("local", parse_service(saying(2)))


@pytest.mark.parametrize("name", [name for name in ALL if name != "topologySpreadConstraints"])
def test_a_cluster_allows_nothing_by_itself(name: str) -> None:
    pod = parse_service(saying(**{name: ALL[name]})).pod
    check_pod_fields(EVERYTHING, pod, "eu")
    with pytest.raises(InvalidInput, match="which the file of cluster eu does not allow") as caught:
        check_pod_fields(AllowedPods(), pod, "eu")
    assert caught.value.field == f"spec.predictor.{name}"


def test_harmless_fields_need_no_permission() -> None:
    spread = ALL["topologySpreadConstraints"]
    check_pod_fields(
        AllowedPods(), parse_service(saying(2, labels={"a": "b"}, topologySpreadConstraints=spread)).pod, "eu"
    )


def test_another_value_of_an_allowed_key_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'pool: system'"):
        check_pod_fields(EVERYTHING, PodFields(node_selector={"pool": "system"}), "eu")
