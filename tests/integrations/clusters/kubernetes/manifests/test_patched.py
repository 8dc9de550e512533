"""Operators' patches: what they change, and what they may not."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Patch
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.patched import merged
from integrations.clusters.kubernetes.options import GatewayReference, Options
from tests.cluster.plane import ControlPlane

OPTIONS = Options(GatewayReference("gateway", "gateways"), "fairlead/serving-runtime:test", "models", "/artifacts")
PRIORITY = Patch(
    "spec.patches[0]", "Deployment", merge={"spec": {"template": {"spec": {"priorityClassName": "serving"}}}}
)


def desired(*patches: Patch, namespace: str = "default") -> Desired:
    def revision(number: int, weight: int, *patches: Patch) -> DesiredRevision:
        artifact = (f"file:///artifacts/{number}", "sha256:0")
        name = f"digits-{number:05}"
        return DesiredRevision(name, "digits", str(number), *artifact, 1, weight_percent=weight, patches=patches)

    return Desired(namespace, "digits", 1, (revision(1, 90), revision(2, 10, *patches)))


def made(wish: Desired) -> dict[str, Manifest]:
    manifests = render(wish, {"digits-00001": 90, "digits-00002": 10}, OPTIONS)
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in manifests}


def operation(kind: str, op: str, path: str, **more: Any) -> Patch:
    return Patch("spec.patches[0]", kind, operations=({"op": op, "path": path, **more},))


def test_a_revisions_objects_have_that_revisions_patches() -> None:
    found = made(desired(PRIORITY))
    assert found["Deployment/digits-00002"]["spec"]["template"]["spec"]["priorityClassName"] == "serving"
    assert "priorityClassName" not in found["Deployment/digits-00001"]["spec"]["template"]["spec"]


def test_what_a_service_has_once_has_the_patches_of_the_revision_with_the_largest_share() -> None:
    patch = operation("NetworkPolicy", "add", "/metadata/annotations", value={"team": "vision"})
    assert made(desired(patch)) == made(desired())
    wish = desired(patch)
    wish = replace(
        wish,
        revisions=tuple(replace(each, weight_percent=50 - number) for number, each in enumerate(wish.revisions[::-1])),
    )
    assert made(wish)["NetworkPolicy/digits"]["metadata"]["annotations"] == {"team": "vision"}


def test_operations_are_made_in_order_and_a_test_that_fails_refuses() -> None:
    at = "/spec/template/spec/terminationGracePeriodSeconds"
    patch = Patch(
        "spec.patches[0]",
        "Deployment",
        operations=({"op": "replace", "path": at, "value": 90}, {"op": "test", "path": at, "value": 90}),
    )
    assert (
        made(desired(patch))["Deployment/digits-00002"]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        == 90
    )
    with pytest.raises(InvalidInput, match=r"spec\.patches\[0\] does not fit Deployment digits-00002"):
        made(desired(operation("Deployment", "test", at, value=1)))


@pytest.mark.parametrize(
    ("patch", "what"),
    [
        pytest.param(operation("Deployment", "replace", "/metadata/name", value="x"), "metadata.name", id="name"),
        pytest.param(
            operation("Service", "replace", "/metadata/namespace", value="x"), "metadata.namespace", id="namespace"
        ),
        pytest.param(operation("Deployment", "add", "/spec/replicas", value=3), "spec.replicas", id="replicas"),
        pytest.param(operation("Service", "remove", "/spec/selector"), "spec.selector", id="selector"),
        pytest.param(
            Patch("spec.patches[0]", "Deployment", merge={"metadata": {"labels": None}}), "metadata.labels", id="labels"
        ),
        pytest.param(
            operation("Deployment", "add", "/metadata/annotations", value={"fairlead/applied": "x"}),
            "fairlead/applied",
            id="annotations",
        ),
        pytest.param(
            operation("Deployment", "add", "/metadata/annotations", value=["x"]),
            "metadata.annotations",
            id="annotations that are no object",
        ),
        pytest.param(
            operation("Deployment", "replace", "/metadata/labels", value="x"),
            "metadata.labels",
            id="labels that are no object",
        ),
        pytest.param(
            operation("Deployment", "add", "/metadata/ownerReferences", value=[]),
            "metadata.ownerReferences",
            id="owner",
        ),
        pytest.param(
            operation("Deployment", "replace", "/spec/template/metadata/labels/fairlead~1revision", value="x"),
            "spec.template.metadata.labels",
            id="labels of pods",
        ),
    ],
)
def test_what_is_not_the_operators_is_refused_by_name(patch: Patch, what: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        made(desired(patch))
    assert what in refused.value.message
    assert refused.value.field == "spec.patches[0]"


@pytest.mark.parametrize(
    ("verb", "at", "value"),
    [
        pytest.param("replace", "/spec/rules/0/backendRefs/0/weight", 1, id="weights"),
        pytest.param("replace", "/spec/rules", ["x"], id="rules that are no objects"),
        pytest.param("add", "/spec/rules/0/filters", ["x"], id="filters that are no objects"),
    ],
)
def test_rules_of_routes_are_refused(verb: str, at: str, value: object) -> None:
    wish = desired(operation("HTTPRoute", verb, at, value=value))
    wish = replace(wish, revisions=(wish.revisions[1], replace(wish.revisions[0], weight_percent=0)))
    with pytest.raises(InvalidInput, match="backendRefs"):
        made(wish)


@pytest.mark.parametrize(
    ("value", "change", "after"),
    [
        pytest.param({"a": 1, "b": {"c": 2}}, {"b": {"c": None, "d": 3}}, {"a": 1, "b": {"d": 3}}, id="objects"),
        pytest.param({"a": [1, 2]}, {"a": [3]}, {"a": [3]}, id="lists take the place"),
        pytest.param({"a": "b"}, {"a": {"c": None}}, {"a": {}}, id="a value becomes an object"),
    ],
)
def test_a_merge_patch_does_what_rfc_7386_says(value: Any, change: Any, after: Any) -> None:
    assert merged(value, change) == after


@pytest.fixture
def driver(plane: ControlPlane) -> Any:
    with plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": "patched"}})
    api = Api(plane.kubeconfig)
    yield KubernetesDriver(api, OPTIONS)
    api.close()


@pytest.mark.cluster
def test_what_patches_change_is_shown_as_a_difference(driver: KubernetesDriver) -> None:
    told = driver.preview(desired(PRIORITY, namespace="patched"), [PRIORITY])
    assert "--- Deployment/digits-00002 as rendered" in told
    assert "+      priorityClassName: serving" in told
    assert "digits-00001" not in told
    assert driver.observe("patched", "digits").revisions == ()


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("patch", "said"),
    [
        pytest.param(operation("Deployment", "add", "/spec/speed", value=1), "speed", id="a field that is not known"),
        pytest.param(replace(PRIORITY, object="other"), "is for Deployment other", id="an object that is not there"),
    ],
)
def test_what_the_cluster_does_not_take_is_refused(patch: Patch, said: str, driver: KubernetesDriver) -> None:
    with pytest.raises(InvalidInput, match=said):
        driver.preview(desired(patch, namespace="patched"), [patch])
