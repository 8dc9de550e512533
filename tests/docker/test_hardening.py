"""What holds of every image: no rights, nothing written, only what is pinned, a bill of materials; asked of a container
that does its work."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docker._support.built import BUILT, MORE, ROOT, TAG
from tests.docker.containers import SAFE, image, serving, web
from tests.docker.engine import Engine
from tests.releases.record import version
from tests.serving_runtime import onnx_models

pytestmark = pytest.mark.images

PROBE = (Path(__file__).parent / "probe.py").read_text()
COMPILED = """
from pathlib import Path
files = [each for folder in ("/opt/fairlead", "/srv/fairlead") for each in Path(folder).rglob("*.pyc")]
flags = [each.read_bytes()[4] for each in files]
print(flags.count(3), len(flags) - flags.count(3))
"""
PIN = re.compile(r"^([a-z0-9._-]+)==([^\s;]+)", re.MULTILINE)
LARGEST_BYTES = {
    "control-plane": 600_000_000,
    "one-machine": 1_100_000_000,
    "runtime-cpu": 850_000_000,
    "runtime-cuda": 3_500_000_000,
}


@pytest.fixture(scope="module", params=BUILT)
def target(request: pytest.FixtureRequest) -> str:
    """Name an image."""
    return str(request.param)


@pytest.fixture(scope="module")
def seen(docker: Engine, target: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """Give what the probe sees in a container that answers."""
    folder = tmp_path_factory.mktemp(target)
    (folder / "models" / "same" / "1").mkdir(parents=True)
    onnx_models.identity(folder / "models" / "same" / "1" / "model.onnx")
    with serving(docker, target, folder) if target.startswith("runtime-") else web(docker, target) as (container, _):
        yield json.loads(docker.docker("exec", container, "python", "-c", PROBE))


def test_none_of_its_processes_is_root_or_has_rights(seen: dict[str, Any]) -> None:
    assert seen["users"] == ["65532"]
    assert seen["capabilities"] == ["0" * 16]
    assert seen["no_new_privileges"] == ["1"]


def test_it_works_where_only_its_own_folders_can_be_written(seen: dict[str, Any], target: str) -> None:
    given = {"/ports"} if target.startswith("runtime-") else {"/var/lib/fairlead"}
    assert set(seen["writable"]) == {"/dev/shm", "/tmp", *given}, "these are mounted by the test"


def test_what_runs_belongs_to_root_where_the_root_file_system_could_be_written(docker: Engine, target: str) -> None:
    """A container that is started without --read-only protects its programs all the same."""
    assert docker.docker("run", "--rm", "--entrypoint=id", image(target), "-u") == "65532"
    writable = ["/opt", "/usr", "/srv", "-writable", "-not", "-type", "l"]
    assert docker.docker("run", "--rm", "--entrypoint=find", image(target), *writable) == ""


def test_its_python_is_compiled_and_fits_its_sources_by_content(docker: Engine, target: str) -> None:
    """The times in a release's images are not those of the build: by time, Python would compile again at each start."""
    found = docker.docker("run", "--rm", *SAFE, "--entrypoint=python", image(target), "-c", COMPILED)
    by_content, otherwise = (int(count) for count in found.split())
    assert by_content > 1000
    assert otherwise == 0


def test_it_holds_the_packages_that_its_lock_pins_and_no_others(seen: dict[str, Any], target: str) -> None:
    pinned = dict(PIN.findall((ROOT / "requirements" / "images" / f"{target}.txt").read_text()))
    pinned |= dict(PIN.findall(Path(ROOT, MORE).read_text() if MORE else ""))
    assert {**seen["packages"]} == {**pinned, "fairlead": version()}


def test_its_bill_of_materials_lists_what_is_installed(docker: Engine, seen: dict[str, Any], target: str) -> None:
    listed = {(each["name"].lower().replace("_", "-"), each["version"]) for each in bill(docker, target)["components"]}
    query = ["--entrypoint=dpkg-query", image(target), "-W", "-f", "${Package} ${Version}\\n"]
    debian = {tuple(line.split()) for line in docker.docker("run", "--rm", *SAFE, *query).splitlines()}
    python = {item for item in seen["packages"].items() if item[0] != "fairlead"}
    assert listed == {*debian, *python}, "all but our own"
    assert len(debian) > 50


def test_a_part_of_the_bill_says_what_it_is_and_its_licence(docker: Engine, target: str) -> None:
    parts = {each["name"]: each for each in bill(docker, target)["components"]}
    assert parts["numpy"]["purl"] == f"pkg:pypi/numpy@{parts['numpy']['version']}"
    assert parts["numpy"]["licenses"]
    assert parts["libc6"]["purl"].startswith("pkg:deb/debian/libc6@")


def bill(docker: Engine, target: str) -> dict[str, Any]:
    """Return the bill of materials, got as docs/reference/images.md says."""
    page = (ROOT / "docs" / "reference" / "images.md").read_text()
    (command,) = re.findall(r"^docker run .*sbom\.cdx\.json$", page, re.MULTILINE)
    named = image("runtime-cpu", version())
    assert named in command
    shell = ["bash", "-c", command.replace(named, image(target))]
    done = subprocess.run(shell, env=docker.environment, capture_output=True, check=True, timeout=120)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.skipif(bool(MORE), reason="further packages were asked for, and make it larger")
def test_it_stays_small(docker: Engine, target: str) -> None:
    size = int(docker.docker("image", "inspect", "--format", "{{.Size}}", image(target)))
    assert size < LARGEST_BYTES[target], f"{image(target, TAG)} has {size / 1e6:.0f} MB"
