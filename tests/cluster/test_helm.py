"""The `helm` command itself, as people call it: it makes of the chart what the engine of the other tests makes, and the
commands of the documentation are ones that it and a real API server take.
"""

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.charts.chart import CHART, NAMESPACE, RELEASE, ROOT, VARIATIONS, Json, objects, values
from tests.cluster import binaries
from tests.cluster.definitions import define_other_kinds
from tests.cluster.plane import ControlPlane
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster
PAGE = ROOT / "docs" / "how-to" / "install-on-kubernetes.md"
UPGRADE = ROOT / "docs" / "runbooks" / "upgrade.md"
DOCUMENTED, MODELS = "documented", "documented-models"
"""Namespaces in the place of the page's own, which other tests have."""


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return str(binaries.helm())
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="module")
def prepared(plane: ControlPlane) -> Iterator[ControlPlane]:
    """Give a cluster with the namespaces of an install."""
    with plane.client() as admin:
        define_other_kinds(admin)
        for name in (DOCUMENTED, MODELS):
            admin.post("/api/v1/namespaces", json={"metadata": {"name": name}}).raise_for_status()
        yield plane
        for name in (DOCUMENTED, MODELS):
            admin.delete(f"/api/v1/namespaces/{name}")


def helm(program: str, *arguments: str, kubeconfig: Path | None = None) -> str:
    """Run the command, and return what it printed."""
    at = ("--kubeconfig", str(kubeconfig)) if kubeconfig is not None else ()
    done = subprocess.run([program, *arguments, *at], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_command_renders_what_the_engine_of_the_other_tests_renders(program: str, variation: str) -> None:
    file = str(CHART / "ci" / f"{variation}-values.yaml")
    said = helm(program, "template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", file)
    found = [each for each in yaml.safe_load_all(said) if each]
    assert _named(found) == _named(objects(values(variation)))


def test_installs_of_the_documentation_are_taken(program: str, prepared: ControlPlane, tmp_path: Path) -> None:
    """Each as it is on the page, but in other namespaces and without making anything."""
    text = PAGE.read_text()
    mine = re.search(r"Write `my-values.yaml`:\n\n   ```yaml\n(.*?)   ```", text, re.DOTALL)
    assert mine
    (tmp_path / "my-values.yaml").write_text(mine[1].replace("[vision]", f"[{MODELS}]"))
    commands = [each for each in _commands(text + UPGRADE.read_text()) if each[:2] == ["helm", "upgrade"]]
    assert len(commands) == 3
    for command in commands:
        words = [str(tmp_path / word) if word == "my-values.yaml" else word for word in command[2:]]
        place = words.index("--namespace") + 1
        words[place] = DOCUMENTED
        said = helm(program, "upgrade", "--install", *words, "--dry-run=server", kubeconfig=prepared.kubeconfig)
        assert "kind: Deployment" in said


def _commands(text: str) -> Iterator[list[str]]:
    for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            yield shlex.split(line)


def _named(found: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Return objects by kind and name; of a Secret only what it is called, since its content is made up each time."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): (
            {} if each["kind"] == "Secret" else each
        )
        for each in found
    }
