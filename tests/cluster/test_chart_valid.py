"""Every object of the chart's variations is one that a real API server takes, with no field that it does not know."""

import httpx
import pytest
import yaml

from tests.charts.chart import MEMBER, NAMESPACE, VARIATIONS, Json, objects, values

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_api_server_takes_every_object_of_a_variation(client: httpx.Client, variation: str) -> None:
    found = [
        each
        for is_upgrade in (False, True)
        for each in objects(values(variation), is_upgrade=is_upgrade)
        if each["kind"] != "ServiceAccount"  # which is there
    ]
    made = {each["metadata"]["name"] for each in found if each["kind"] == "Namespace"}
    for each in found:
        if each["metadata"].get("namespace") in made:  # which is not there, as nothing is made here
            each["metadata"]["namespace"] = NAMESPACE
    refused = {f"{each['kind']} {each['metadata']['name']}": said for each in found if (said := _refusal(client, each))}
    assert refused == {}
    assert len(found) > 20


def test_the_api_server_takes_every_object_of_a_member_cluster(client: httpx.Client) -> None:
    given = yaml.safe_load((MEMBER / "ci" / "all-values.yaml").read_text())
    namespaces = {"namespaces": ["member-vision", "member-text"], "jobsNamespace": "member-checks"}
    made = objects(given | namespaces, chart_folder=MEMBER)
    found = [each for each in made if each["kind"] != "CustomResourceDefinition"]  # other tests make these
    for each in found:
        if "namespace" in each["metadata"]:
            each["metadata"]["namespace"] = NAMESPACE
    refused = {f"{each['kind']} {each['metadata']['name']}": said for each in found if (said := _refusal(client, each))}
    assert refused == {}


def test_the_api_server_would_have_told_of_a_wrong_field(client: httpx.Client) -> None:
    wrong = next(each for each in objects(values("trial")) if each["kind"] == "Deployment")
    wrong["spec"]["template"]["spec"]["containers"][0]["recources"] = {}
    assert 'unknown field "spec.template.spec.containers[0].recources"' in _refusal(client, wrong)


def _refusal(client: httpx.Client, manifest: Json) -> str:
    """Return why the API server would not create an object, or what it warns of; empty where it takes it."""
    group = manifest["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    resources = client.get(root).raise_for_status().json()["resources"]
    kind = next(each for each in resources if each["kind"] == manifest["kind"] and "/" not in each["name"])
    place = f"{root}/namespaces/{manifest['metadata'].get('namespace', NAMESPACE)}" if kind["namespaced"] else root
    query = {"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "test"}
    answer = client.post(f"{place}/{kind['name']}", params=query, json=manifest)
    return answer.headers.get("warning", "") if answer.is_success else str(answer.json()["message"])
