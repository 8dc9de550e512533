"""The chart from its install to its uninstall, with Helm's own engine: what the first release installed works, and goes
on working while it is upgraded, or fails to be. One story: each test finds what the one before it left.
"""

from collections.abc import Iterator
from pathlib import Path

import helm_python as helm
import httpx
import pytest

from tests.charts.chart import CHART, ROOT
from tests.cluster import images
from tests.cluster.installed import NAMESPACE, RELEASE, WITHIN_S, Installed, cluster_for_the_chart
from tests.cluster.plane import ControlPlane
from tests.cluster.visitors import Visitors
from tests.integrations.conftest import Traffic, model

pytestmark = pytest.mark.cluster
POLICY = """
name: half
strategy: canary
steps: [{weight: 50, hold: 2s}]
scaleDownDelay: 1s
"""
SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: digits, namespace: default}
spec:
  predictor:
    minReplicas: 1
    model:
      modelFormat: {name: onnx}
      storageUri: models:/digits/1
  rollout: {policy: half}
"""
FIRST = ROOT / "tests" / "releases" / "0.1.0" / "fairlead-0.1.0.tgz"
NEVER_READY = "raise SystemExit('this version does not start')\n"


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    later = tmp_path_factory.mktemp("later")
    table = "CREATE TABLE {} (id integer)"
    trees = {
        "with-a-migration": images.later_version(later / "added", sql=table.format("of_version_2")),
        "with-a-wrong-migration": images.later_version(later / "wrong", sql="CREATE TABLE (nonsense)"),
        "never-ready": images.later_version(later / "never_used", sql=table.format("of_version_4"), asgi=NEVER_READY),
    }
    versions = {tag: images.control_plane(tree) for tag, tree in trees.items()}
    versions["first"] = images.control_plane()
    with cluster_for_the_chart(plane, tmp_path_factory.mktemp("chart"), versions) as made:
        try:
            made.helm.install(FIRST, RELEASE, made.values("first"), wait="watcher", timeout=WITHIN_S)
        except helm.HelmError as error:
            pytest.fail(f"{error}\n{made.logs()}")
        yield made


@pytest.fixture(scope="module")
def token(installed: Installed) -> str:
    """Return a token made as NOTES.txt says."""
    return installed.manage("token_create", "--name", "first", "--scope", "admin").strip()


def test_after_the_install_the_pages_answer_and_helm_test_passes(installed: Installed) -> None:
    page = httpx.get(installed.web, follow_redirects=True, timeout=60, trust_env=False)
    assert page.status_code == 200
    assert "Sign in" in page.text
    assert "database and broker answer" in installed.helm.test(RELEASE, timeout=WITHIN_S, logs=True)["logs"]


def test_a_canary_runs_to_its_end_on_the_cluster_that_the_chart_is_on(
    installed: Installed, token: str, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "service.yaml").write_text(SERVICE)
    checked = installed.fairlead(token, "clusters", "check", "here", "--namespace", "default")
    assert "not ok" not in checked
    for number in (1, 2):
        (tmp_path / "model.onnx").write_bytes(model(number))
        installed.fairlead(token, "models", "push", str(tmp_path / "model.onnx"), "--name", "digits", "--wait")
    installed.fairlead(token, "policies", "apply", "-f", str(tmp_path / "policy.yaml"))
    installed.fairlead(token, "services", "apply", "-f", str(tmp_path / "service.yaml"), "--wait")
    url = f"{installed.harness.gateway.url}/serving/default/digits/v2/models/digits"
    installed.until(lambda: httpx.get(url, timeout=10, trust_env=False).status_code == 200, "the service's route")
    with Traffic(installed.harness.gateway.url, clients=1) as traffic:
        installed.fairlead(token, "rollouts", "start", "digits", "--version", "2", "--wait")
        traffic.until_sent(50, within_s=WITHIN_S)
    assert traffic.failures == []
    assert set(traffic.by_revision()) == {"digits-00001", "digits-00002"}


def test_an_upgrade_with_a_migration_is_noticed_by_nobody(installed: Installed, token: str) -> None:
    with Traffic(installed.harness.gateway.url, clients=1) as traffic, _visitors(installed, token) as visitors:
        visitors.until_asked(5, within_s=WITHIN_S)
        _upgrade(installed, "with-a-migration")
        traffic.until_sent(20, within_s=WITHIN_S)
        visitors.until_asked(20, within_s=WITHIN_S)
    assert traffic.failures == []
    assert visitors.failures == []
    assert installed.images() == {"fairlead/control-plane:with-a-migration"}
    assert "_added" in installed.manage("showmigrations", "deployments", "--list")
    assert installed.manage("migrate", "--check") == ""
    assert "digits" in installed.fairlead(token, "services", "list")


def test_a_rollback_to_the_first_release_is_noticed_by_nobody(installed: Installed, token: str) -> None:
    with Traffic(installed.harness.gateway.url, clients=1) as traffic, _visitors(installed, token) as visitors:
        visitors.until_asked(5, within_s=WITHIN_S)
        installed.helm.rollback(RELEASE, version=1, wait="watcher", timeout=WITHIN_S)
        traffic.until_sent(20, within_s=WITHIN_S)
        visitors.until_asked(20, within_s=WITHIN_S)
    assert traffic.failures == []
    assert visitors.failures == []
    assert installed.images() == {"fairlead/control-plane:first"}
    assert "_added" in installed.newest_migration(), "the tables are those of the version after it"
    assert "here" in installed.fairlead(token, "clusters", "list")


def test_a_migration_that_fails_ends_the_upgrade_before_anything_is_changed(installed: Installed, token: str) -> None:
    before = {each["metadata"]["uid"] for each in installed.pods("web")}
    with pytest.raises(helm.HelmError, match="migrations"):
        _upgrade(installed, "with-a-wrong-migration")
    assert {each["metadata"]["uid"] for each in installed.pods("web")} == before
    assert installed.helm.status(RELEASE)["status"] == "deployed"
    assert "here" in installed.fairlead(token, "clusters", "list")


def test_an_upgrade_that_never_gets_ready_is_rolled_back_by_itself(installed: Installed, token: str) -> None:
    before = installed.images()
    with pytest.raises(helm.HelmError):
        _upgrade(installed, "never-ready", timeout_s=90)
    assert installed.helm.status(RELEASE)["status"] == "deployed"
    assert installed.images() == before
    assert "_never_used" in installed.newest_migration(), "the tables are those of the version after it"
    assert "here" in installed.fairlead(token, "clusters", "list")


def test_an_uninstall_leaves_what_holds_data_and_nothing_else(installed: Installed) -> None:
    installed.helm.uninstall(RELEASE, wait="watcher", timeout=WITHIN_S)
    of_a_failed_migration = f"{RELEASE}-migrations-"  # its Job and pod, whose log tells why
    assert {each for each in _left(installed) if not each[1].startswith(of_a_failed_migration)} == {
        ("secrets", RELEASE),
        *(("persistentvolumeclaims", name) for name in installed.claims),
    }


def _visitors(installed: Installed, token: str) -> Visitors:
    return Visitors(installed.service, host=RELEASE, token=token)


def _upgrade(installed: Installed, version: str, *, timeout_s: int = WITHIN_S) -> None:
    given = installed.values(version)
    installed.helm.upgrade(CHART, RELEASE, given, wait="watcher", timeout=timeout_s, rollback_on_failure=True)


def _left(installed: Installed) -> set[tuple[str, str]]:
    """Return kind and name of whatever is of the release, or in its namespace and not Kubernetes' own."""
    groups = {
        "/api/v1": ("services", "pods", "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims"),
        "/apis/apps/v1": ("deployments", "statefulsets", "replicasets"),
        "/apis/batch/v1": ("jobs",),
        "/apis/policy/v1": ("poddisruptionbudgets",),
        "/apis/networking.k8s.io/v1": ("networkpolicies", "ingresses"),
        "/apis/rbac.authorization.k8s.io/v1": ("roles", "rolebindings"),
    }
    found = {
        (kind, each["metadata"]["name"])
        for root, kinds in groups.items()
        for kind in kinds
        for each in installed.api.get(f"{root}/namespaces/{NAMESPACE}/{kind}").raise_for_status().json()["items"]
        if "deletionTimestamp" not in each["metadata"]
    }
    labels = {"labelSelector": f"app.kubernetes.io/instance={RELEASE}"}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    found |= {
        (kind, each["metadata"]["name"])
        for kind in ("clusterroles", "clusterrolebindings", "rolebindings")
        for each in installed.api.get(f"{rbac}/{kind}", params=labels).raise_for_status().json()["items"]
    }
    return found - {("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")}
