"""Clusters are added, checked, changed and forgotten, their GPUs are cut, and the fleet is upgraded, on pages."""

import base64
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply.gpu_nodes import CONFIG_MAP, KEY
from tests.browser._support import chromium
from tests.browser.whole import desk as desks
from tests.browser.whole.desk import WAIT_MS, Desk, ask, see
from tests.browser.whole.driven import drives
from tests.browser.whole.served import answering, ask_linear, bring, linear_file
from tests.cluster._support.node.mig_manager import mig_manager
from tests.cluster._support.nodes import make_node, make_pod
from tests.cluster.harness import CLAIM, IMAGE, Harness
from tests.cluster.plane import ControlPlane
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, until
from tests.registry._support import model_files

pytestmark = [pytest.mark.cluster, pytest.mark.e2e]
browser, screenshots, desk = chromium.browser, chromium.screenshots, desks.desk
linear_model = model_files.linear_model

_NODE, _SMALL, _OLD = "gpu-of-pages", "nvidia.com/mig-1g.10gb", "all-1g.10gb"
_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_TO_CREATE = re.compile(r"kubectl create namespace ([a-z-]+)")
_TO_BIND = re.compile(r"ind ClusterRole (\S+) of role\.yaml with a (?:ClusterRoleBinding|RoleBinding in (\S+)) to")


@pytest.fixture(scope="module")
def platform(cluster: Harness, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    """One running platform for the module, which knows nothing of the cluster."""
    artifacts = {"FAIRLEAD_ARTIFACTS_FOLDER": str(cluster.artifacts.folder)}
    with started(tmp_path_factory.mktemp("pages"), **artifacts) as made:
        yield made


def flattened(kubeconfig: Path) -> dict[str, Any]:
    """Return a kubeconfig with the files that it names in it, as `kubectl config view --flatten --raw` does."""
    content: dict[str, Any] = json.loads(kubeconfig.read_text())
    for part in (content["clusters"][0]["cluster"], content["users"][0]["user"]):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in part:
                part[f"{name}-data"] = base64.b64encode(Path(part.pop(name)).read_bytes()).decode()
    return content


def bind_as_told(plane: ControlPlane, user: str, told: str) -> list[str]:
    """Do for a user what the words of a check say; return the addresses of what was made, in the order to delete it."""
    roles = {
        each["metadata"]["name"]: each
        for each in yaml.safe_load_all(Path(rbac.__file__).with_name("role.yaml").read_text())
    }
    made = []
    with plane.client() as client:
        for name in _TO_CREATE.findall(told):
            client.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
            made.append(f"/api/v1/namespaces/{name}")
        for role, namespace in dict.fromkeys(_TO_BIND.findall(told)):
            name = f"pages-{role}"
            body = {**roles[role], "metadata": {"name": name}}
            client.post(f"{_RBAC}/clusterroles", json=body).raise_for_status()
            binding = {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
                "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}],
            }
            place = f"namespaces/{namespace}/rolebindings" if namespace else "clusterrolebindings"
            client.post(f"{_RBAC}/{place}", json=binding).raise_for_status()
            made += [f"{_RBAC}/clusterroles/{name}", f"{_RBAC}/{place}/{name}"]
    return made[::-1]


@drives(
    "GET platform",
    "GET cluster-new",
    "POST cluster-fill",
    "POST cluster-look",
    "POST cluster-apply",
    "GET cluster-detail",
    "GET cluster-check",
    "POST cluster-prices",
    "POST cluster-delete",
)
def test_a_cluster_is_added_gets_the_rights_that_its_check_names_and_is_forgotten(
    desk: Desk, platform: Platform, cluster: Harness
) -> None:
    page, gateway = desk.page(), cluster.options.gateway
    kubeconfig = json.dumps(flattened(cluster.plane.user("fairlead-of-pages")))
    page.get_by_role("link", name="Platform").click()
    page.get_by_role("link", name="Add a cluster").click()
    for label, value in (
        ("Name", "production"),
        ("Gateway URL", cluster.gateway.url),
        ("Gateway", gateway.name),
        ("Gateway namespace", gateway.namespace),
        ("Runtime image", IMAGE),
        ("Volume claim", CLAIM),
        ("Artifacts folder", str(cluster.artifacts.folder)),
        ("Control plane URL", platform.url),
        ("Kubeconfig", kubeconfig),
    ):
        page.get_by_label(label, exact=True).fill(value)
    text = page.get_by_role("textbox", name="The cluster file as YAML")
    expect(text).to_have_value(re.compile(f"controlPlaneUrl: {platform.url}"))
    text.fill(text.input_value() + "drain: 5s\n")
    page.get_by_role("button", name="Preview and check").press("Enter")
    plan, check = page.locator("#cluster-plan"), page.locator("#check")
    expect(plan.get_by_role("heading", name="Something is missing")).to_be_visible()
    expect(check).to_contain_text("Kubernetes v1.")
    expect(check).to_contain_text("Not permitted: create tokenreviews.authentication.k8s.io")
    expect(plan.locator("ins").filter(has_text="drain: 5s")).to_be_visible()
    assert "client-key-data" not in plan.inner_text()
    desk.look(page, "cluster-looked-at")
    page.get_by_role("button", name="Add cluster production all the same").click()
    see(page, "Cluster production is there now.")

    page.get_by_role("link", name="Check now").click()
    expect(check.get_by_role("heading", name="Something is missing")).to_be_visible()
    desk.look(page, "cluster-poor")
    made = bind_as_told(cluster.plane, "fairlead-of-pages", check.inner_text())
    assert len(made) >= 8
    try:
        until(lambda: _checks(page) == "Services can run here", 30, "the rights are given")
        expect(check.get_by_text("missing", exact=True)).to_have_count(0)
        expect(page.get_by_role("region", name="Components")).to_contain_text(re.compile("up", re.I), timeout=WAIT_MS)
        desk.look(page, "cluster-well")
        page.get_by_test_id("no-prices").click()
        page.get_by_label("Currency").fill("EUR")
        page.get_by_label("Replica without a GPU").fill("0,25")
        page.get_by_role("button", name="Set prices").click()
        see(page, "The prices are set.")
        see(page, "by the hour, in EUR")
        with platform.client() as client:
            prices = client.get("clusters/production/prices")
        assert prices == {"currency": "EUR", "per_hour": {"replica": 0.25}}
        page.get_by_role("link", name="Platform", exact=True).first.click()
        expect(page.get_by_role("link", name="production", exact=True)).to_be_visible()
        page.get_by_role("link", name="production", exact=True).click()
        ask(page, "Forget…", "Forget")
        see(page, "Cluster production is forgotten; what runs on it was left alone.")
        expect(page.get_by_role("link", name="production", exact=True)).to_have_count(0)
    finally:
        with cluster.plane.client() as client:
            for place in made:
                client.delete(place).raise_for_status()


def _checks(page: Page) -> str:
    """Check now, and return the headline."""
    with page.expect_response(re.compile("/check$")):
        page.get_by_role("link", name="Check now").click()
    return page.locator("#check-title").inner_text()


@pytest.fixture
def gpu_node(cluster: Harness) -> Iterator[str]:
    """A node with one GPU in seven slices, and the file that MIG manager reads."""
    cut = {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}
    file = yaml.safe_dump({"version": "v1", "mig-configs": {_OLD: [cut]}})
    make_node(cluster, _NODE, {_SMALL: "7"}, mig_config=_OLD, mig_config_state="success")
    with cluster.plane.client() as client:
        body = {"metadata": {"name": CONFIG_MAP}, "data": {KEY: file}}
        client.post(resource_types.CONFIG_MAP.path("default"), json=body).raise_for_status()
        yield _NODE
        client.delete(resource_types.CONFIG_MAP.path("default", CONFIG_MAP)).raise_for_status()
        client.delete(resource_types.NODE.path("", _NODE)).raise_for_status()


@drives(
    "GET cluster-file",
    "POST cluster-file-fill",
    "POST cluster-file-look",
    "POST cluster-file-apply",
    "GET cluster-gpus",
    "GET cluster-gpus-stream",
    "POST repartition-propose",
    "POST repartition-action approve",
    "POST repartition-action decline",
    "POST repartition-action abort",
)
def test_gpus_are_cut_anew_from_their_page_once_the_clusters_file_lets_them(
    desk: Desk, platform: Platform, cluster: Harness, gpu_node: str
) -> None:
    file = platform.home.parent / "cluster.yaml"
    file.write_text(yaml.safe_dump(_cluster_file(cluster, platform.url)))
    platform.fairlead("clusters", "apply", "-f", str(file))
    page = desk.page()
    page.goto("/platform/clusters/gpus/")
    page.get_by_role("link", name="File", exact=True).click()
    page.get_by_label("Runtime image with CUDA").fill("fairlead/runtime:cuda")
    text = page.get_by_role("textbox", name="The cluster file as YAML")
    expect(text).to_have_value(re.compile("gpuRuntimeImage: fairlead/runtime:cuda"))
    text.fill(text.input_value() + "repartition: {namespace: default, configDelay: 0s}\n")
    page.get_by_role("button", name="Preview and check").click()
    expect(page.get_by_role("heading", name="Services can run here")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^MIG manager's file ok"))).to_be_visible()
    desk.look(page, "cluster-changed")
    page.get_by_role("button", name="Apply it to gpus").click()
    see(page, "Cluster gpus is changed now.")

    page.get_by_role("link", name="GPUs").click()
    node = page.get_by_role("region", name=gpu_node, exact=True)
    expect(node.locator("[data-state=free]")).to_have_count(7)
    make_pod(cluster, "notebook")
    until(lambda: _assigned(cluster, "notebook"), 60, "the pod is on the node")
    page.get_by_role("link", name="Look now").click()
    expect(node.locator("[data-state=taken]")).to_have_count(1)
    expect(node.locator("[data-state=taken]")).to_contain_text("default/notebook")
    with cluster.plane.client() as client:
        client.request("DELETE", resource_types.POD.path("default", "notebook"), json={"gracePeriodSeconds": 0})
    page.get_by_role("link", name="Look now").click()
    expect(node.locator("[data-state=free]")).to_have_count(7)

    propose(page)
    ask(page, "Decline…", "Decline", {"Why": "the notebook comes back"})
    earlier = page.get_by_role("region", name="Earlier repartitions").get_by_role("row")
    expect(earlier.nth(1)).to_contain_text("The notebook comes back")
    propose(page)
    under_way = page.get_by_role("region", name=re.compile(rf"Repartition \d+ of {gpu_node}"))
    ask(page, "Approve…", "Approve")
    expect(under_way).to_contain_text("Cutting", timeout=WAIT_MS)  # by the stream; MIG manager is asleep
    assert _node(cluster)["spec"]["unschedulable"] is True
    desk.look(page, "gpus-cutting")
    ask(page, "Abort…", "Abort", {"Why": "somebody needs it now"})
    _mig_manager_until(cluster, page, "Aborted", 2)
    expect(earlier.nth(1)).to_contain_text(
        re.compile("Aborted; the GPUs are cut as they were.*: somebody needs it now")
    )
    assert _node(cluster)["spec"].get("unschedulable") is None
    assert _node(cluster)["status"]["allocatable"][_SMALL] == "7"

    propose(page)
    page.get_by_role("button", name="Approve…").press("Enter")
    page.get_by_role("dialog").get_by_label("Why").fill("the night shift agreed")
    page.keyboard.press("Enter")
    see(page, "Approved; the node is drained, and then cut.")
    page.evaluate("window.stayed = true")
    _mig_manager_until(cluster, page, "Done", 3)
    expect(node.locator("[data-state=free]").filter(has_text="3g.40gb")).to_have_count(1, timeout=WAIT_MS)
    expect(page.get_by_role("row", name="nvidia.com/mig-3g.40gb H100-80GB 1 1")).to_be_visible()
    assert page.evaluate("window.stayed") is True
    assert _node(cluster)["status"]["allocatable"]["nvidia.com/mig-3g.40gb"] == "1"
    desk.look(page, "gpus-done")
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(color_scheme="dark")
    desk.look(page, "gpus-done-390-dark")


SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {{name: {name}}}
spec:
  cluster: waves
  predictor: {{model: {{modelFormat: {{name: onnx}}, storageUri: "models:/linear/1"}}}}
"""


@drives(
    "GET fleet",
    "POST upgrade-start",
    "POST upgrade-action pause",
    "POST upgrade-action resume",
    "POST upgrade-action cancel",
)
def test_the_fleet_goes_over_in_waves_after_a_change_of_the_cluster_file(
    desk: Desk, platform: Platform, cluster: Harness, tmp_path: Path, linear_model: Callable[..., bytes]
) -> None:
    place = replace(platform, cluster_gateway=cluster.gateway.url.partition("://")[2])
    file = tmp_path / "waves.yaml"

    def change(drain: str) -> None:
        document = {**_cluster_file(cluster, platform.url), "name": "waves", "drain": drain}
        del document["jobs"]
        file.write_text(yaml.safe_dump(document))
        platform.fairlead("clusters", "apply", "-f", str(file))

    def is_serving(name: str) -> bool:
        return ask_linear(place, name).status_code == 200

    change("5s")
    page = desk.page()
    bring(page, linear_file(tmp_path, linear_model()))
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(SERVICE.format(name=name))
        platform.fairlead("services", "apply", "-f", str(tmp_path / f"{name}.yaml"))
    for name in ("one", "two"):
        until(lambda name=name: is_serving(name), WAIT_MS / 1000, f"answers of {name}")  # type: ignore[misc]

    change("6s")
    page.get_by_role("link", name="Platform").click()
    page.get_by_role("link", name="Fleet", exact=True).click()
    behind = page.get_by_test_id("behind")
    expect(behind).to_contain_text("default/two", timeout=WAIT_MS)
    expect(behind).to_contain_text("default/one", timeout=WAIT_MS)
    expect(behind).to_contain_text("terminationGracePeriodSeconds")
    page.reload()  # the form appears with the page
    desk.look(page, "fleet-behind")
    assert answering(place, "one", 5) == {"one-00001"}, "nothing is replaced by itself"
    page.get_by_role("button", name="Start the upgrade").click()
    ask(page, "Pause…", "Pause")
    expect(page.get_by_test_id("upgrade-message")).to_contain_text("paused it")
    ask(page, "Resume…", "Resume")
    expect(page.get_by_test_id("upgrade")).to_contain_text("Running")
    desk.look(page, "fleet-upgrading")
    earlier = page.get_by_role("region", name="Earlier upgrades").get_by_role("row")

    def is_over() -> bool:
        assert all(map(is_serving, ("one", "two"))), "a request was lost"
        return not page.get_by_test_id("upgrade").is_visible()

    until(is_over, WAIT_MS / 1000, "the end of the upgrade")
    expect(earlier.nth(1)).to_contain_text("Complete")
    for name in ("one", "two"):
        assert answering(place, name, 5) == {f"{name}-00002"}

    change("5s")
    expect(behind).to_contain_text("default/two", timeout=WAIT_MS)
    expect(behind).to_contain_text("default/one", timeout=WAIT_MS)
    page.reload()
    page.get_by_role("button", name="Start the upgrade").click()
    ask(page, "End now…", "End now")
    expect(earlier.nth(1)).to_contain_text("Cancelled")
    desk.look(page, "fleet-cancelled")
    for name in ("one", "two"):
        platform.fairlead("services", "delete", name)
    until(lambda: "default" not in platform.fairlead("services", "list").stdout, WAIT_MS / 1000, "the services' end")


def propose(page: Page) -> None:
    page.get_by_label("Of", exact=True).select_option("3g.40gb")
    page.get_by_role("button", name="Propose a repartition").click()
    expect(page.get_by_role("button", name="Approve…")).to_be_visible()


def _cluster_file(cluster: Harness, control_plane_url: str) -> dict[str, Any]:
    """Return a file by which the control plane may do everything, but cut nodes."""
    gateway = cluster.options.gateway
    return {
        "name": "gpus",
        "kind": "kubernetes",
        "connection": {"kubeconfig": flattened(cluster.plane.kubeconfig)},
        "gateway": {"url": cluster.gateway.url, "name": gateway.name, "namespace": gateway.namespace},
        "runtimeImage": IMAGE,
        "controlPlaneUrl": control_plane_url,
        "artifacts": {"claim": CLAIM, "root": str(cluster.artifacts.folder)},
        "jobs": {"namespace": "default"},
    }


def _mig_manager_until(cluster: Harness, page: Page, phase: str, count: int) -> None:
    """Let MIG manager work until so many repartitions have settled, the last in this phase."""
    rows = page.get_by_role("region", name="Earlier repartitions").get_by_role("row")

    def is_settled() -> bool:
        mig_manager(cluster.plane, _NODE)
        return rows.count() == 1 + count

    until(is_settled, WAIT_MS / 1000, f"{phase} on the page, without a reload")
    expect(rows.nth(1)).to_contain_text(phase)


def _node(cluster: Harness) -> dict[str, Any]:
    with cluster.plane.client() as client:
        found: dict[str, Any] = client.get(resource_types.NODE.path("", _NODE)).raise_for_status().json()
    return found


def _assigned(cluster: Harness, pod: str) -> bool:
    with cluster.plane.client() as client:
        found = client.get(resource_types.POD.path("default", pod)).raise_for_status().json()
    return bool(found["spec"].get("nodeName") == _NODE)
