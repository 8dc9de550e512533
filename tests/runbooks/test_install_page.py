"""From nothing to a canary in under ten steps: the page's first part, counted and followed.

Fetching, verifying, installing the command line and rendering the chart are done as the page says, with a release of
this tree. A cluster is not there: a script stands in for kubectl, and a platform on this machine for the installed
one. The same steps on a cluster: tests/cluster/test_install_page.py.
"""

import os
import re
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from tests.charts.chart import pods
from tests.e2e._support.platforms import models, platform
from tests.e2e._support.shared import pytest_runtest_teardown, shared_platforms
from tests.e2e.harness import Platform
from tests.releases._support.release import DIGESTS, REGISTRY, Release, release
from tests.runbooks._support.downloads import OFFLINE, SITE, published
from tests.runbooks.following import FROM_NOTHING, ROOT, Page, Shell, opened, part, tool

__all__ = ["models", "platform", "pytest_runtest_teardown", "release", "shared_platforms"]
PAGE = "how-to/install-on-kubernetes.md"
FEWER_THAN = 10
BEFORE_THE_CLUSTER = 4
KUBECTL = """#!/bin/sh
case "$*" in
"port-forward --namespace fairlead service/fairlead 8080:80") ;;
"exec --namespace fairlead deployment/fairlead-web --container web -- "*" token_create --name first --scope admin")
    cat token ;;
*) echo "kubectl $*: not known here" >&2; exit 1 ;;
esac
"""


def numbered() -> list[str]:
    """Return the numbered steps of the part."""
    text = part((ROOT / "docs" / PAGE).read_text(), FROM_NOTHING)
    return re.split(r"^\d+\. ", text, flags=re.MULTILINE)[1:]


def test_there_are_under_ten_steps_each_with_what_to_run_or_to_write() -> None:
    found = numbered()
    assert 1 < len(found) < FEWER_THAN
    assert [step for step in found if "```" not in step] == []
    text = part((ROOT / "docs" / PAGE).read_text(), FROM_NOTHING)
    assert re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE) == [str(number + 1) for number in range(len(found))]


@pytest.fixture(scope="module")
def downloads(release: Release) -> Iterator[str]:
    """The address where the release is published."""
    with published(release.folder) as address:
        yield address


@dataclass
class Story:
    """The page, how far it is followed, and what a reader fills in."""

    page: Page
    folder: Path
    filled: dict[str, str]


@pytest.fixture(scope="module")
def rendered(
    downloads: str,
    release: Release,
    tmp_path_factory: pytest.TempPathFactory,
) -> Story:
    """The page after the steps that need no cluster."""
    folder = tmp_path_factory.mktemp("install")
    shutil.copyfile(release.public_key, folder / "release.pub")
    tool(folder / "tools" / "python3", [sys.executable])
    helm = f"PYTHONPATH={ROOT}:$PYTHONPATH {sys.executable} -m tests.runbooks._support.helm"
    tool(folder / "tools" / "helm", ["env", *helm.split()])
    tool(folder / "tools" / "kubectl", KUBECTL)
    path = f"{folder / 'cli' / 'bin'}:{folder / 'tools'}:{os.defpath}"
    shell = Shell(folder, {"PATH": path, "HOME": str(folder), **OFFLINE})
    filled = {SITE: downloads}
    page = opened(PAGE, shell, filled, only=FROM_NOTHING)
    page.follow(2)
    (packages,) = (folder / "cli" / "lib").glob("python3*/site-packages")
    (packages / "needs.pth").write_text("".join(f"{each}\n" for each in site.getsitepackages()))
    page.follow(BEFORE_THE_CLUSTER - 2)
    return Story(page, folder, filled)


def test_the_release_is_fetched_verified_installed_and_rendered(rendered: Story) -> None:
    version = rendered.page.shell.run("command -v fairlead && fairlead --version")
    assert version == f"{rendered.folder}/cli/bin/fairlead\nfairlead 0.1.0\n"
    objects = [each for each in yaml.safe_load_all((rendered.folder / "rendered.yaml").read_text()) if each]
    images = {container["image"] for _, pod in pods(objects) for container in pod["containers"]}
    assert f"{REGISTRY}/control-plane@{DIGESTS[f'{REGISTRY}/control-plane:0.1.0']}" in images
    assert {each["metadata"]["namespace"] for each in objects if each["kind"] == "Deployment"} == {"fairlead"}


def test_a_file_that_was_changed_on_its_way_ends_the_first_step(
    downloads: str,
    release: Release,
    tmp_path: Path,
) -> None:
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", tmp_path / "own.key"], check=True)
    command = ["openssl", "pkey", "-in", tmp_path / "own.key", "-pubout", "-out", tmp_path / "release.pub"]
    subprocess.run(command, check=True)
    (text,) = re.findall(r"```sh\n(.*?)```", numbered()[0], re.DOTALL)
    Shell(tmp_path, {"PATH": os.defpath}).fails(text.replace(SITE, downloads))
    assert {path.name for path in tmp_path.iterdir()} == {"own.key", "release.pub", "SHA256SUMS", "SHA256SUMS.sig"}


@pytest.mark.e2e
def test_a_canary_runs_to_its_end_by_the_rest_of_the_steps(
    rendered: Story,
    platform: Platform,
    models: Path,
) -> None:
    for number in (1, 2):
        shutil.copyfile(models / f"v{number}.onnx", rendered.folder / f"digits-{number}.onnx")
    shutil.copyfile(platform.home / "token", rendered.folder / "token")
    rendered.filled |= {
        "http://localhost:8080": platform.url,
        "clusters check here --namespace fairlead-models": "clusters show local",
        "namespace: fairlead-models": "namespace: default",
        "fairlead-models/digits": "default/digits",
        "hold: 2m": "hold: 1s",
    }
    said = rendered.page.follow_the_rest()
    rendered.page.is_over()
    assert "Healthy" in said
    assert "digits" in rendered.page.shell.run("fairlead services show default/digits")
