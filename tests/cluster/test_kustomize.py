"""Kustomize builds every overlay, of the objects that the chart would make, and a real API server takes them all."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from clusters.domain.cluster_file.file import parse_cluster
from clusters.services.clusters import cluster_apply
from common.errors import InvalidInput
from deployments.services import service_apply
from integrations.clusters.kubernetes.manifests import render
from tests.charts.chart import Json
from tests.charts.kustomize import BASE, COMPONENTS, FOLDER, NAMESPACE, Key, objects
from tests.cluster._support.namespaces import make_namespace, remove_namespaces
from tests.cluster.binaries import kustomize
from tests.deployments._support.platform import Platform
from tests.releases.record import version
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster
OVERLAYS = ("local", "staging", "production")
RUNTIME = f"fairlead/serving-runtime:{version()}"


def built(folder: Path) -> dict[Key, Json]:
    """Return what Kustomize makes of a folder, by kind and name."""
    try:
        program = kustomize()
    except MissingPartError as missing:
        skip_or_fail(missing)
    done = subprocess.run([program, "build", str(folder)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    made = [each for each in yaml.safe_load_all(done.stdout) if each is not None]
    return {(each["kind"], each["metadata"]["name"]): each for each in made}


def test_the_base_is_the_chart() -> None:
    assert built(FOLDER / "base") == objects(BASE)


@pytest.mark.parametrize("name", COMPONENTS)
def test_a_component_is_what_the_chart_makes_of_its_values(name: str, tmp_path: Path) -> None:
    """Beside the overlay's addresses, which are here those of the base."""
    place = FOLDER / "overlays" / "production" / "addresses.yaml"
    (tmp_path / "kustomize").symlink_to(FOLDER)
    (tmp_path / "addresses.yaml").write_text(place.read_text())
    resources, components = ["kustomize/base", "addresses.yaml"], [f"kustomize/components/{name}"]
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": resources, "components": components}))
    found, addresses = built(tmp_path), yaml.safe_load(place.read_text())
    assert found.pop(("ConfigMap", addresses["metadata"]["name"])) == addresses
    assert found == objects({**BASE, **COMPONENTS[name]})


@pytest.mark.parametrize("name", OVERLAYS)
def test_everything_that_has_an_address_has_the_overlays(name: str) -> None:
    found = built(FOLDER / "overlays" / name)
    addresses = found["ConfigMap", "fairlead-addresses"]["data"]
    said = {
        (variable["name"], variable["value"])
        for each in found.values()
        for container in _containers(each)
        for variable in container.get("env", [])
        if variable["name"] in ("FAIRLEAD_URL", "FAIRLEAD_GATEWAY_URL")
    }
    assert said == {("FAIRLEAD_URL", addresses["url"]), ("FAIRLEAD_GATEWAY_URL", addresses["gateway-url"])}
    file = yaml.safe_load(found["ConfigMap", "fairlead-cluster"]["data"]["cluster.yaml"])
    assert file["gateway"]["url"] == addresses["gateway-url"]
    if ("Ingress", "fairlead") in found:
        assert found["Ingress", "fairlead"]["spec"]["rules"][0]["host"] == addresses["host"]
        assert found["Certificate", "fairlead"]["spec"]["dnsNames"] == [addresses["host"]]


GPU = "nvidia.com/gpu"


@pytest.fixture
def platform(db: None) -> Platform:
    """Give a platform with a model, whose cluster takes what it is given."""
    made = Platform()
    made.version(1)
    return made


def apply_service(platform: Platform, overlay: str, limits: dict[str, int]) -> dict[str, Json]:
    """Apply a service on the cluster of an overlay's file; return its workloads' containers by name."""
    file = yaml.safe_load(built(FOLDER / "overlays" / overlay)["ConfigMap", "fairlead-cluster"]["data"]["cluster.yaml"])
    cluster, _ = cluster_apply(document=file, name=None, actor="ops", now=platform.clock())
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["resources"] = {"limits": limits}
    document["spec"]["cluster"] = cluster.name
    service_apply(document=document, namespace=None, name=None, actor="ops", now=platform.clock())
    platform.turn()
    desired = platform.cluster.applied[-1]
    rendered = render(desired, {desired.revisions[0].name: 100}, parse_cluster(file).options)
    return {container["name"]: container for each in rendered for container in _containers(each)}


@pytest.mark.parametrize("overlay", OVERLAYS)
def test_a_service_on_cpus_runs_the_small_image_of_an_overlay(platform: Platform, overlay: str) -> None:
    assert apply_service(platform, overlay, {})["runtime"]["image"] == RUNTIME


def test_production_takes_a_gpu_service_and_runs_it_with_cuda(platform: Platform) -> None:
    container = apply_service(platform, "production", {GPU: 1})["runtime"]
    assert container["image"] == f"{RUNTIME}-cuda"
    assert container["resources"]["limits"][GPU] == "1"


@pytest.mark.parametrize("overlay", ["local", "staging"])
def test_an_overlay_without_the_component_refuses_a_gpu_service_by_the_field(platform: Platform, overlay: str) -> None:
    with pytest.raises(InvalidInput, match="names no image with CUDA; apply it with gpuRuntimeImage"):
        apply_service(platform, overlay, {GPU: 1})
    assert platform.cluster.applied == []


@pytest.fixture(scope="module")
def namespace(client: httpx.Client) -> Iterator[httpx.Client]:
    labels = {"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/warn": "restricted"}
    make_namespace(client, NAMESPACE, labels)
    yield client
    remove_namespaces(client, (NAMESPACE,))


@pytest.mark.parametrize("name", OVERLAYS)
def test_the_api_server_takes_an_overlay_by_server_side_apply(namespace: httpx.Client, name: str) -> None:
    found = built(FOLDER / "overlays" / name)
    refused = {key: said for key, each in found.items() if (said := _refusal(namespace, each))}
    assert refused == {}
    assert len(found) > 25


def test_the_api_server_would_have_told_of_a_wrong_field(namespace: httpx.Client) -> None:
    wrong = built(FOLDER / "base")["Deployment", "fairlead-web"]
    wrong["spec"]["template"]["spec"]["containers"][0]["recources"] = {}
    assert "recources" in _refusal(namespace, wrong)


def _refusal(admin: httpx.Client, manifest: Json) -> str:
    """Return why the API server would not apply an object, or what it warns of; empty where it takes it."""
    group = manifest["apiVersion"]
    root = f"/apis/{group}" if "/" in group else f"/api/{group}"
    resources = admin.get(root).raise_for_status().json()["resources"]
    kind = next(each for each in resources if each["kind"] == manifest["kind"] and "/" not in each["name"])
    place = f"{root}/namespaces/{manifest['metadata'].get('namespace')}" if kind["namespaced"] else root
    answer = admin.patch(
        f"{place}/{kind['name']}/{manifest['metadata']['name']}",
        params={"dryRun": "All", "fieldValidation": "Strict", "fieldManager": "kubectl", "force": "true"},
        content=yaml.safe_dump(manifest),
        headers={"content-type": "application/apply-patch+yaml"},
    )
    return answer.headers.get("warning", "") if answer.is_success else str(answer.json()["message"])


def _containers(manifest: Json) -> Iterator[Json]:
    pod = manifest.get("spec", {}).get("template", {}).get("spec", {})
    yield from (*pod.get("containers", ()), *pod.get("initContainers", ()))
