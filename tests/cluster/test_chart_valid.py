"""Every object of the chart's variations is one that a real API server takes, with no field that it does not know."""

import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.charts.chart import NAMESPACE, RELEASE, VARIATIONS, Json, objects, values
from tests.cluster.binaries import module_folder
from tests.cluster.plane import ControlPlane
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster
MONITORING = ("servicemonitors", "podmonitors", "prometheusrules")
NAMESPACES = (NAMESPACE, "vision", "text")
DEFINED_BY = {
    "github.com/prometheus-operator/prometheus-operator@v0.85.0": (
        "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
        [f"example/prometheus-operator-crd/monitoring.coreos.com_{kind}.yaml" for kind in MONITORING],
    ),
    "github.com/cert-manager/cert-manager@v1.19.1": (
        "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=",
        ["deploy/crds/cert-manager.io_certificates.yaml"],
    ),
}
"""Go modules with the definitions of kinds that are not Kubernetes' own, the modules' sums, and the files."""
_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_WITHIN_S = 60.0


@pytest.fixture(scope="module")
def client(plane: ControlPlane) -> Iterator[httpx.Client]:
    with plane.client() as admin:
        for name in NAMESPACES:
            labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
            admin.post("/api/v1/namespaces", json={"metadata": {"name": name, "labels": labels}}).raise_for_status()
        account = {"metadata": {"name": RELEASE}}  # which a Pod has to name one of, in dry runs too
        admin.post(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts", json=account).raise_for_status()
        try:
            names = [_define(admin, file) for file in _files()]
        except MissingPartError as missing:
            skip_or_fail(missing)
        yield admin
        for name in names:
            admin.delete(f"{_DEFINITIONS}/{name}")
        for name in NAMESPACES:
            admin.delete(f"/api/v1/namespaces/{name}")


def _files() -> Iterator[Path]:
    for name, (checksum, files) in DEFINED_BY.items():
        folder = module_folder(name, checksum)
        yield from (folder / file for file in files)


def _define(admin: httpx.Client, file: Path) -> str:
    """Make a kind known, and wait until it is served; returns the definition's name."""
    definition = yaml.safe_load(file.read_text())
    admin.post(_DEFINITIONS, json=definition).raise_for_status()
    spec = definition["spec"]
    version = next(each["name"] for each in spec["versions"] if each["storage"])
    served = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
    deadline = time.monotonic() + _WITHIN_S
    while admin.get(served).status_code != 200:
        assert time.monotonic() < deadline, f"{served} is not served within {_WITHIN_S:g} s"
        time.sleep(0.05)
    return str(definition["metadata"]["name"])


@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_api_server_takes_every_object_of_a_variation(client: httpx.Client, variation: str) -> None:
    found = [
        each
        for is_upgrade in (False, True)
        for each in objects(values(variation), is_upgrade=is_upgrade)
        if each["kind"] != "ServiceAccount"  # which is there
    ]
    refused = {f"{each['kind']} {each['metadata']['name']}": said for each in found if (said := _refusal(client, each))}
    assert refused == {}
    assert len(found) > 20


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
