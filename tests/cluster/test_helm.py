"""The `helm` command itself, as people call it: it makes of the chart what the engine of other tests makes."""

import subprocess

import pytest
import yaml

from tests.charts.chart import CHART, NAMESPACE, RELEASE, ROOT, VARIATIONS, Json, objects, values
from tests.cluster import binaries
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def program() -> str:
    try:
        return str(binaries.helm())
    except MissingPartError as missing:
        skip_or_fail(missing)


def helm(program: str, *arguments: str) -> str:
    """Run the command, and return what it printed."""
    done = subprocess.run([program, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("variation", VARIATIONS)
def test_the_command_renders_what_the_engine_of_the_other_tests_renders(program: str, variation: str) -> None:
    file = str(CHART / "ci" / f"{variation}-values.yaml")
    said = helm(program, "template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--values", file)
    found = [each for each in yaml.safe_load_all(said) if each]
    assert _named(found) == _named(objects(values(variation)))


def _named(found: list[Json]) -> dict[tuple[str, str, str], Json]:
    """Return objects by kind and name; of a Secret only what it is called, since its content is made up each time."""
    return {
        (each["kind"], each["metadata"].get("namespace", ""), each["metadata"]["name"]): (
            {} if each["kind"] == "Secret" else each
        )
        for each in found
    }
