"""From nothing to a canary on a cluster, by the nine steps of the page, with a release of this tree."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from releases import Order, make_release
from releases.signatures import private_key
from tests.cluster._support.installed import Installed, cluster_for_the_chart
from tests.cluster._support.node import images
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import model
from tests.releases._support.release import keys, repository
from tests.runbooks._support.downloads import OFFLINE, SITE, published
from tests.runbooks.following import FROM_NOTHING, Shell, opened

pytestmark = [pytest.mark.cluster, pytest.mark.long]  # the same steps but for the cluster are in tests/runbooks
__all__ = ["repository"]
VERSION = "0.1.0"


@pytest.fixture
def installed(plane: ControlPlane, tmp_path: Path) -> Iterator[Installed]:
    with cluster_for_the_chart(plane, tmp_path, {VERSION: images.control_plane()}) as made:
        yield made


@pytest.fixture
def release(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release whose images have the names that the test's nodes know, and no digests."""
    folder = tmp_path_factory.mktemp("release")
    key, _ = keys(folder)
    make_release(repository, folder / "files", Order(digests=""), private_key(key))
    return folder


def test_nine_steps_lead_from_the_files_of_a_release_to_a_canary(installed: Installed, release: Path) -> None:
    shell = Shell(installed.shell.folder, {**installed.shell.environment, **OFFLINE})
    shutil.copyfile(release / "release.pub", shell.folder / "release.pub")
    for number in (1, 2):
        (shell.folder / f"digits-{number}.onnx").write_bytes(model(number))
    own = installed.own(VERSION)
    installed.write("own.yaml", {**own, "persistence": {"artifacts": {"size": "1Gi"}}})
    gateway = installed.harness.gateway.reference
    with published(release / "files") as address:
        filled = {
            SITE: address,
            '  gateway: {url: "https://models.example.com", name: models, namespace: gateways}': (
                f"  namespaces: [default]\n  gateway: {{url: '{installed.harness.gateway.url}', name: {gateway.name}, "
                f"namespace: {gateway.namespace}}}"
            ),
            "--values my-values.yaml": "--values my-values.yaml --values own.yaml",
            # `fairlead` of this shell connects to the web's pod, and `kubectl port-forward` has no kubelet to ask.
            "kubectl port-forward --namespace fairlead service/fairlead 8080:80 > port-forward.log &": "",
            " --url http://localhost:8080": "",
            "fairlead-models": "default",
            "hold: 2m": "hold: 2s",
        }
        page = opened("how-to/install-on-kubernetes.md", shell, filled, only=FROM_NOTHING)
        try:
            said = page.follow_the_rest()
        except AssertionError as error:
            pytest.fail(f"{error}\n{installed.logs()}")
    page.is_over()
    assert "Healthy" in said
    assert installed.images() == {f"fairlead/control-plane:{VERSION}"}
    url = f"{installed.harness.gateway.url}/serving/default/digits/v2/models/digits"
    installed.until(lambda: httpx.get(url, timeout=10, trust_env=False).status_code == 200, "the service's route")
    shell.run("fairlead services delete default/digits")
    managed = "--namespace default --selector app.kubernetes.io/managed-by=fairlead --for delete --timeout 15m"
    shell.run(f"kubectl wait deployment {managed} && helm uninstall fairlead --namespace fairlead --wait")
