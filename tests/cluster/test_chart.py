"""The chart from its install to its uninstall, as the pages say it: what the first release installed works, and goes
on working while it is upgraded, or fails to be. Models are served by the first release's runtime. One story: each test
finds what the one before it left.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.cluster._support.definitions import define_other_kinds
from tests.cluster._support.installed import (
    MODEL_CACHE,
    NAMESPACE,
    RELEASE,
    WITHIN_S,
    Installed,
    cluster_for_the_chart,
    volume,
)
from tests.cluster._support.namespaces import remove_namespaces
from tests.cluster._support.node import images
from tests.cluster._support.remains import remains
from tests.cluster._support.visitors import Visitors
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import Traffic, model
from tests.releases.packages import FIRST_CHART, first_runtime
from tests.runbooks.following import FROM_NOTHING, Page, followed
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

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
UPGRADE = (
    "helm upgrade fairlead charts/fairlead --namespace fairlead --values my-values.yaml "
    "--rollback-on-failure --wait --timeout 15m"
)
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
    runtime = first_runtime(tmp_path_factory.mktemp("first_runtime"))
    with cluster_for_the_chart(plane, tmp_path_factory.mktemp("chart"), versions, runtime=runtime) as made:
        yield made
        remove_namespaces(made.api, ("vision", "fairlead-models", "fairlead-jobs"))  # left where a test failed


@pytest.fixture(scope="module")
def install(installed: Installed, servers: tuple[Postgres, Redis]) -> Iterator[Page]:
    """The page about installing: on trial in the story's first test, to stay in its last."""
    gateway = installed.harness.gateway.reference
    filled = {
        "--install fairlead charts/fairlead --namespace fairlead --create-namespace": (
            f"--install fairlead {FIRST_CHART} --namespace fairlead --create-namespace"
        ),
        "--set cluster.gateway.name=models --set cluster.gateway.namespace=gateways": "--values my-values.yaml",
        "postgres://fairlead:PASSWORD@HOST:5432/fairlead?sslmode=require": servers[0].url,
        "redis://HOST:6379/0": servers[1].url,
        "name: models, namespace: gateways": f"name: {gateway.name}, namespace: {gateway.namespace}",
        "--values my-values.yaml --wait": "--values my-values.yaml --values own.yaml --wait",
    }
    # Of the part before, tests/runbooks/test_install_page.py has the release.
    with followed("how-to/install-on-kubernetes.md", installed.shell, filled, without=FROM_NOTHING) as page:
        yield page


@pytest.fixture(scope="module")
def upgrade(installed: Installed) -> Iterator[Page]:
    with followed("runbooks/upgrade.md", installed.shell) as page:
        yield page


@pytest.fixture(scope="module")
def backup(installed: Installed) -> Iterator[Page]:
    with followed("runbooks/back-up-on-kubernetes.md", installed.shell) as page:
        yield page


@pytest.fixture(scope="module")
def token(install: Page) -> str:
    """Return a token made as the page says."""
    return install.follow().strip()


def test_after_the_install_the_pages_answer_and_helm_test_passes(installed: Installed, install: Page) -> None:
    installed.values("first")
    try:
        said = install.follow()
    except AssertionError as error:
        pytest.fail(f"{error}\n{installed.logs()}")
    page = httpx.get(installed.web, follow_redirects=True, timeout=60, trust_env=False)
    assert page.status_code == 200
    assert "Sign in" in page.text
    assert "database and broker answer" in said


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


def test_a_backup_has_the_database_and_the_model_files(installed: Installed, backup: Page, token: str) -> None:
    backup.follow()
    assert installed.shell.run("tar --list --file artifacts.tar").count("/model.onnx") == 2
    assert "digits" in installed.fairlead(token, "models", "list")


def test_an_upgrade_with_a_migration_is_noticed_by_nobody(installed: Installed, upgrade: Page, token: str) -> None:
    installed.values("with-a-migration")
    with Traffic(installed.harness.gateway.url, clients=1) as traffic, _visitors(installed, token) as visitors:
        visitors.until_asked(5, within_s=WITHIN_S)
        said = upgrade.follow()
        traffic.until_sent(20, within_s=WITHIN_S)
        visitors.until_asked(20, within_s=WITHIN_S)
    assert traffic.failures == []
    assert visitors.failures == []
    assert "Upgrade complete" in said
    assert "database and broker answer" in said
    assert installed.images() == {"fairlead/control-plane:with-a-migration"}
    assert "_added" in installed.manage("showmigrations", "deployments", "--list")
    assert installed.manage("migrate", "--check") == ""
    assert "digits" in installed.fairlead(token, "services", "list")


def test_a_rollback_to_the_first_release_is_noticed_by_nobody(installed: Installed, upgrade: Page, token: str) -> None:
    with Traffic(installed.harness.gateway.url, clients=1) as traffic, _visitors(installed, token) as visitors:
        visitors.until_asked(5, within_s=WITHIN_S)
        upgrade.follow()
        traffic.until_sent(20, within_s=WITHIN_S)
        visitors.until_asked(20, within_s=WITHIN_S)
    assert traffic.failures == []
    assert visitors.failures == []
    assert installed.images() == {"fairlead/control-plane:first"}
    assert "_added" in installed.newest_migration(), "the tables are those of the version after it"
    assert "here" in installed.fairlead(token, "clusters", "list")


def test_a_migration_that_fails_ends_the_upgrade_before_anything_is_changed(
    installed: Installed, upgrade: Page, token: str
) -> None:
    before = {each["metadata"]["uid"] for each in installed.pods("web")}
    installed.values("with-a-wrong-migration")
    assert "migrations" in installed.shell.fails(UPGRADE)
    assert {each["metadata"]["uid"] for each in installed.pods("web")} == before
    assert installed.helm.status(RELEASE)["status"] == "deployed"
    assert "here" in installed.fairlead(token, "clusters", "list")
    assert 'syntax error at or near "("' in upgrade.follow()


def test_an_upgrade_that_never_gets_ready_is_rolled_back_by_itself(installed: Installed, token: str) -> None:
    before = installed.images()
    installed.values("never-ready")
    installed.shell.fails(f"{UPGRADE} --timeout 120s")
    assert installed.helm.status(RELEASE)["status"] == "deployed"
    assert installed.images() == before
    assert "_never_used" in installed.newest_migration(), "the tables are those of the version after it"
    assert "here" in installed.fairlead(token, "clusters", "list")


def test_a_restore_brings_all_back_as_it_was_at_the_backup_while_services_go_on(
    installed: Installed, backup: Page, token: str, tmp_path: Path
) -> None:
    artifacts = next(folder for name, folder in installed.claims.items() if name.endswith("-artifacts"))
    files = {path: path.read_bytes() for path in artifacts.rglob("model.onnx")}
    for path in files:
        path.unlink()
    (tmp_path / "policy.yaml").write_text(POLICY.replace("half", "later"))
    installed.fairlead(token, "policies", "apply", "-f", str(tmp_path / "policy.yaml"))
    before = _numbers_of_pods(installed)
    with Traffic(installed.harness.gateway.url, clients=1) as traffic:
        backup.follow_the_rest()
        traffic.until_sent(50, within_s=WITHIN_S)
    assert traffic.failures == []
    assert _numbers_of_pods(installed) == before, "as many as the values have"
    assert {path: path.read_bytes() for path in files} == files
    assert "digits" in installed.fairlead(token, "services", "list")
    policies = installed.fairlead(token, "policies", "list")
    assert "half" in policies
    assert "later" not in policies
    assert "_never_used" not in installed.newest_migration(), "the tables are those of the backup"


def test_the_secret_key_is_replaced_and_nobody_is_signed_out(installed: Installed, token: str) -> None:
    installed.values("with-a-migration")
    installed.shell.run(UPGRADE)
    webhook = ("webhooks", "create", "https://ci.example/hook", "--event", "RolloutHealthy", "--output", "json")
    secret = json.loads(installed.fairlead(token, *webhook))["secret"]
    before = installed.secret("secret-key")
    filled = {"secret fairlead-servers": f"secret {RELEASE}"}
    shell = installed.shell_with(token)
    with Visitors(installed.service, host=RELEASE, token=token, signed_in=True) as browser:
        with followed("runbooks/rotate-secrets-on-kubernetes.md", shell, filled) as page:
            assert "again" in page.follow()
            for _ in ("both keys are accepted", "the new one signs"):
                page.follow()
                browser.until_asked(5, within_s=WITHIN_S)
                assert installed.secret_of_webhook() == secret
            assert "webhooks 1" in page.follow()
            page.follow()
            assert installed.secret_of_webhook() == secret
            page.follow()
        browser.until_asked(5, within_s=WITHIN_S)
    assert browser.failures == []
    after = installed.secret("secret-key")
    assert after != before
    assert len(installed.helm.history(RELEASE)) == 1


def test_an_installation_moves_to_namespaces_of_its_own_and_a_closed_network(installed: Installed, token: str) -> None:
    filled = {"namespaces: [fairlead, fairlead-models]": "namespaces: [default, fairlead-models]"}
    with (
        Traffic(installed.harness.gateway.url, clients=1) as traffic,
        followed("runbooks/separate-namespaces.md", installed.shell_with(token), filled) as page,
    ):
        said = page.follow_the_rest()
        traffic.until_sent(20, within_s=WITHIN_S)
    assert traffic.failures == []
    assert "model jobs can run in fairlead-jobs" in said, "the check would have failed for a finding that is not ok"

    def policies(namespace: str) -> set[str]:
        path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
        return {each["metadata"]["name"] for each in installed.api.get(path).json()["items"]}

    installed.until(lambda: policies("default") == {"digits", "digits.replicas", "fairlead-models"}, "closed networks")
    assert policies("fairlead-jobs") == {"fairlead-models"}, "a Job brings its own"
    for name in ("fairlead-models", "fairlead-jobs"):
        path = f"/api/v1/namespaces/{name}"
        installed.api.delete(path)
        installed.until(lambda: installed.api.get(path).status_code == 404, "its end")  # noqa: B023 - called at once


def test_an_installation_from_before_gets_the_defaults_of_today_while_services_go_on(
    installed: Installed, token: str
) -> None:
    assert installed.secret("broker-url") == f"redis://{RELEASE}-redis:6379/0", "no upgrade brought a password"
    with (
        Traffic(installed.harness.gateway.url, clients=1) as traffic,
        followed("runbooks/secure-defaults.md", installed.shell) as page,
    ):
        page.follow()
        assert "database and broker answer" in page.follow()
        traffic.until_sent(20, within_s=WITHIN_S)
    assert traffic.failures == []
    address = installed.secret("broker-url")
    assert address.startswith("redis://default:")
    before = {each["metadata"]["name"] for each in installed.pods("web")}
    installed.shell.run(UPGRADE)
    assert installed.secret("broker-url") == address
    assert {each["metadata"]["name"] for each in installed.pods("web")} == before, "the same again replaces no pod"
    (web,) = installed.pods("web")
    env = {each["name"]: each.get("value") for each in web["spec"]["containers"][0]["env"]}
    assert env["FAIRLEAD_METRICS_ACCESS"] == "token"
    assert "digits" in installed.fairlead(token, "services", "list")


def test_an_uninstall_leaves_what_holds_data_and_nothing_else(installed: Installed, token: str) -> None:
    with followed("runbooks/uninstall.md", installed.shell_with(token), {"vision": "default"}) as page:
        page.follow()
        of_a_failed_migration = f"{RELEASE}-migrations-"  # its Job and pod, whose log tells why
        left = remains(installed.api, RELEASE, NAMESPACE)
        assert {each for each in left if not each[1].startswith(of_a_failed_migration)} == {
            ("secrets", RELEASE),
            *(("persistentvolumeclaims", name) for name in installed.claims),
        }
        assert f"{RELEASE}-artifacts" in page.follow()
        page.follow()
    assert installed.api.get(f"/api/v1/namespaces/{NAMESPACE}").status_code == 404


def test_the_install_to_stay_takes_servers_of_its_own_and_lets_services_run(
    installed: Installed, install: Page
) -> None:
    define_other_kinds(installed.api)
    for name, size in ((f"{RELEASE}-artifacts", "200Gi"), (f"{RELEASE}-state", "10Gi")):
        volume(installed.api, name, size=size, storage_class="shared")
    volume(installed.api, MODEL_CACHE, size="200Gi", storage_class="shared", namespace="vision")
    installed.write("own.yaml", installed.own("first"))
    install.follow(2)
    assert "database and broker answer" in install.follow()
    checked = install.follow()
    assert "vision" in checked
    assert "not ok" not in checked
    installed.shell.run("helm uninstall fairlead --namespace fairlead")
    installed.api.delete("/api/v1/namespaces/vision")


def _numbers_of_pods(installed: Installed) -> dict[str, int]:
    """Return how many pods each Deployment of the release is to have."""
    items = installed.api.get(f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments").raise_for_status().json()["items"]
    return {each["metadata"]["name"]: each["spec"]["replicas"] for each in items}


def _visitors(installed: Installed, token: str) -> Visitors:
    return Visitors(installed.service, host=RELEASE, token=token)
