"""The `helm` command itself, as people call it: it makes of the chart what the engine of other tests makes."""

import os
import subprocess
from collections.abc import Iterator

import httpx
import pytest
import yaml

from tests.charts.chart import CHART, NAMESPACE, RELEASE, ROOT, VARIATIONS, Json, objects, values
from tests.cluster import binaries
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until
from tests.releases.packages import FIRST_CHART
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return str(binaries.helm())
    except MissingPartError as missing:
        skip_or_fail(missing)


def helm(program: str, *arguments: str, plane: ControlPlane | None = None) -> str:
    """Run the command, and return what it printed."""
    env = dict(os.environ) if plane is None else {**os.environ, "KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run([program, *arguments], cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_command_renders_what_the_engine_of_the_other_tests_renders(program: str, variation: str) -> None:
    file = str(CHART / "ci" / f"{variation}-values.yaml")
    said = helm(program, "template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", file)
    found = [each for each in yaml.safe_load_all(said) if each]
    assert _named(found) == _named(objects(values(variation)))


def test_the_command_renders_the_same_twice_as_argo_cd_calls_it(program: str) -> None:
    file = str(CHART / "ci" / "argo-cd-values.yaml")
    known = ("--include-crds", "--kube-version", "1.30.0", "--api-versions", "gateway.networking.k8s.io/v1")
    call = ("template", str(CHART), "--name-template", RELEASE, "--namespace", NAMESPACE, "--values", file, *known)
    assert helm(program, *call) == helm(program, *call)


@pytest.fixture
def namespace(client: httpx.Client, program: str, plane: ControlPlane) -> Iterator[str]:
    name = "kept-namespaces"
    yield name
    helm(program, "uninstall", RELEASE, "--namespace", name, "--no-hooks", "--ignore-not-found", plane=plane)
    for each in (name, f"{RELEASE}-models"):
        client.delete(f"/api/v1/namespaces/{each}")
    for each in (name, f"{RELEASE}-models"):
        until(lambda path=f"/api/v1/namespaces/{each}": client.get(path).status_code == 404, "its end", 300)


def test_an_upgrade_keeps_the_namespaces_and_the_network_that_the_installation_has(
    program: str, plane: ControlPlane, client: httpx.Client, namespace: str
) -> None:
    """No pod runs for it: hooks are left out, nothing is waited for, and upgrades are tried by the API server alone."""
    place = ("--namespace", namespace, "--no-hooks")

    def upgraded() -> dict[tuple[str, str, str], Json]:
        said = helm(program, "upgrade", RELEASE, str(CHART), *place, "--dry-run=server", plane=plane)
        text = said.partition("MANIFEST:")[2].partition("\nNOTES:")[0]
        return _named([each for each in yaml.safe_load_all(text) if each])

    helm(program, "install", RELEASE, str(CHART), *place, "--create-namespace", plane=plane)
    new = upgraded()
    assert ("Namespace", "", f"{RELEASE}-models") in new
    assert f"namespace: {RELEASE}-jobs" in new["ConfigMap", namespace, f"{RELEASE}-cluster"]["data"]["cluster.yaml"]
    assert ("NetworkPolicy", f"{RELEASE}-jobs", f"{RELEASE}-models") in new
    helm(program, "uninstall", RELEASE, *place, plane=plane)
    helm(program, "install", RELEASE, str(FIRST_CHART), *place, plane=plane)
    old = upgraded()
    assert not [key for key in old if key[0] == "Namespace"]
    file = yaml.safe_load(old["ConfigMap", namespace, f"{RELEASE}-cluster"]["data"]["cluster.yaml"])
    assert (file["jobs"], "network" in file) == ({"namespace": namespace}, False)
    assert ("NetworkPolicy", namespace, f"{RELEASE}-models") not in old
    helm(program, "uninstall", RELEASE, *place, plane=plane)
    until(lambda: client.get(f"/api/v1/namespaces/{RELEASE}-jobs").status_code == 404, "its end", 300)
    helm(program, "install", RELEASE, str(CHART), *place, plane=plane)
    kept = client.get(f"/api/v1/namespaces/{RELEASE}-models").json()
    assert kept["status"]["phase"] == "Active", "the namespace of models stays at uninstall, and is adopted"


def test_an_upgrade_as_flux_does_it_finds_the_secret_and_renders_the_same_twice(
    program: str, plane: ControlPlane, namespace: str
) -> None:
    """Flux runs Helm's own install and upgrade, which see the cluster: what is made up is made up once."""
    place = ("--install", RELEASE, str(CHART), "--namespace", namespace, "--no-hooks")
    helm(program, "upgrade", *place, "--create-namespace", plane=plane)

    def secrets() -> list[Json]:
        said = helm(program, "get", "manifest", RELEASE, "--namespace", namespace, plane=plane)
        return [each["data"] for each in yaml.safe_load_all(said) if each and each["kind"] == "Secret"]

    first = secrets()
    assert len(first) == 1
    manifests = []
    for _ in range(2):
        helm(program, "upgrade", *place, plane=plane)
        assert secrets() == first
        manifests.append(helm(program, "get", "manifest", RELEASE, "--namespace", namespace, plane=plane))
    assert manifests[0] == manifests[1]


def _named(found: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Return objects by kind and name; of a Secret only what it is called, since its content is made up each time."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): (
            {} if each["kind"] == "Secret" else each
        )
        for each in found
    }
