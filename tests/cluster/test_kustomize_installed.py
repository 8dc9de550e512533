"""The page about Kustomize, followed with `kubectl` itself: an install that lets services run, then an upgrade."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from tests.charts.kustomize import FOLDER
from tests.cluster._support.definitions import define_other_kinds
from tests.cluster._support.installed import NAMESPACE, RELEASE, Installed, cluster_for_the_chart, volume
from tests.cluster._support.node import images
from tests.cluster.plane import ControlPlane
from tests.runbooks.following import Page, followed
from tests.servers.postgres import Postgres
from tests.servers.redis import Redis

pytestmark = pytest.mark.cluster
PRODUCTION = Path("kustomize/overlays/production")


@pytest.fixture(scope="module")
def installed(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    later = images.later_version(tmp_path_factory.mktemp("later") / "added", sql="CREATE TABLE of_version_2 (id int)")
    versions = {"first": images.control_plane(), "later": images.control_plane(later)}
    with cluster_for_the_chart(plane, tmp_path_factory.mktemp("kustomize"), versions) as made:
        define_other_kinds(made.api)
        for name, size in ((f"{RELEASE}-artifacts", "50Gi"), (f"{RELEASE}-state", "10Gi")):
            volume(made.api, name, size=size)
        made.until(lambda: made.api.get(f"/api/v1/namespaces/{NAMESPACE}").status_code == 404, "an empty place")
        shutil.copytree(FOLDER, made.shell.folder / "kustomize")
        write_overlay(made, "first")
        yield made
        made.shell.run(f"kubectl delete -k {PRODUCTION} --ignore-not-found --wait=false")


@pytest.fixture(scope="module")
def page(installed: Installed, servers: tuple[Postgres, Redis]) -> Iterator[Page]:
    filled = {
        "postgres://fairlead:PASSWORD@HOST:5432/fairlead?sslmode=require": servers[0].url,
        "redis://HOST:6379/0": servers[1].url,
    }
    with followed("how-to/install-with-kustomize.md", installed.shell, filled) as made:
        yield made


def write_overlay(installed: Installed, version: str) -> None:
    """Set in the overlay what the page's table names: addresses, cluster file and images; and one pod of each kind."""
    folder = installed.shell.folder / PRODUCTION
    own, gateway = installed.own(version)["cluster"], installed.harness.gateway
    addresses = yaml.safe_load((FOLDER / "overlays/production/addresses.yaml").read_text())
    addresses["data"]["gateway-url"] = gateway.url
    cluster = yaml.safe_load((FOLDER / "overlays/staging/cluster.yaml").read_text())
    file = yaml.safe_load(cluster["data"]["cluster.yaml"])
    file["gateway"] = {"url": gateway.url, "name": gateway.reference.name, "namespace": gateway.reference.namespace}
    file["artifacts"] |= own["file"].pop("artifacts")
    file |= {**own["file"], "runtimeImage": ":".join(own["runtimeImage"].values())}
    cluster["data"]["cluster.yaml"] = yaml.safe_dump(file)
    overlay = yaml.safe_load((FOLDER / "overlays/production/kustomization.yaml").read_text())
    overlay["replicas"] = [{**each, "count": 1} for each in overlay["replicas"]]
    overlay["images"] = [{"name": "fairlead/control-plane", "newTag": version}]
    overlay["patches"] = [{"path": "cluster.yaml"}]
    for name, content in (("addresses", addresses), ("cluster", cluster), ("kustomization", overlay)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))


def test_after_the_install_the_pages_answer_and_services_can_run(installed: Installed, page: Page) -> None:
    try:
        page.follow(2)
    except AssertionError as error:
        pytest.fail(f"{error}\n{installed.logs()}")
    token = page.follow().strip()
    answer = httpx.get(installed.web, follow_redirects=True, timeout=60, trust_env=False)
    assert answer.status_code == 200
    assert "Sign in" in answer.text
    row = installed.until(lambda: "here" in installed.fairlead(token, "clusters", "list"), "the Job that makes the row")
    assert row
    checked = installed.fairlead(token, "clusters", "check", "here", "--namespace", NAMESPACE)
    assert "not ok" not in checked


def test_an_upgrade_brings_the_database_along(installed: Installed, page: Page) -> None:
    write_overlay(installed, "later")
    page.follow()
    assert installed.images() == {"fairlead/control-plane:later"}
    assert "_added" in installed.newest_migration()
    assert installed.manage("migrate", "--check") == ""
