"""Archives of images by an engine that writes them: Docker with buildx, or Podman. Docker loads and runs them, and they
are equal when they are built again."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from releases import images, oci_archive
from releases.source import Source
from tests.docker._support.built import ROOT
from tests.docker.containers import SAFE
from tests.docker.engine import Engine, base, unmount_below

pytestmark = pytest.mark.images

TARGET = "control-plane"
NAMES = images.Names("registry.example.com/fairlead", "1.2.3", (TARGET,))
STORAGE = '[storage]\ndriver = "overlay"\nrunroot = "{0}/run"\ngraphroot = "{0}/graph"\n'
# After the stage that all images begin with: a module that is compiled as theirs are.
LAST_STAGE = f"""
FROM base AS {TARGET}
COPY docker/compile.sh /src/
COPY hello.py /srv/hello/
RUN /src/compile.sh /srv/hello
USER 65532:65532
"""


@pytest.fixture(scope="module")
def options(docker_engine: Engine) -> Iterator[list[str]]:
    """Give options of a build by the engine that a release finds; Podman gets a storage of its own, with the base."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="fairlead-podman-") as folder:
        if docker_engine.host:
            patch.setenv("DOCKER_HOST", docker_engine.host)
        found, name = images.engine(), base(docker_engine)
        if found is None:
            pytest.skip("neither docker with buildx nor podman answers; install the Debian package podman")
        if found.program == "podman":
            Path(folder, "storage.conf").write_text(STORAGE.format(folder))
            patch.setenv("CONTAINERS_STORAGE_CONF", f"{folder}/storage.conf")
            docker_engine.docker("save", "--output", f"{folder}/base.tar", name, timeout_s=600)
            podman("load", "--input", f"{folder}/base.tar")
            name = f"localhost/{name}"
        try:
            yield ["--network", "host", "--no-cache", "--build-arg", f"BASE={name}"]
        finally:
            if found.program == "podman":
                podman("rmi", "--all", "--force")
            unmount_below(Path(folder))


@pytest.fixture
def source(tmp_path: Path) -> Source:
    """Return a tree with the images' first stage, and a small last one."""
    tree = tmp_path / "source"
    (tree / "docker").mkdir(parents=True)
    first = (ROOT / "docker" / "Dockerfile").read_text().partition("# --- ")[0]
    (tree / "docker" / "Dockerfile").write_text(first + LAST_STAGE)
    shutil.copy(ROOT / "docker" / "compile.sh", tree / "docker")
    (tree / "hello.py").write_text("print(open(__spec__.cached, 'rb').read()[4])\n")
    return Source("0" * 40, 1_700_000_000, "1.2.3", tree)


def podman(*arguments: str) -> None:
    subprocess.run(["podman", *arguments], capture_output=True, check=True, timeout=600)


def test_an_archive_built_again_is_equal_and_docker_runs_it(
    docker_engine: Engine, source: Source, options: list[str], tmp_path: Path
) -> None:
    found, reference = images.engine(), NAMES.reference(TARGET)
    assert found is not None
    built = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        digests = images.build_all(found, source, NAMES, tmp_path / name, options)
        archive = tmp_path / name / images.archive_name(TARGET, "1.2.3")
        with archive.open("rb") as file:
            assert digests == {reference: oci_archive.verified(file, archive.name, reference)}
        built.append(archive)
    assert built[0].read_bytes() == built[1].read_bytes()
    assert reference in docker_engine.docker("load", "--input", str(built[0]), timeout_s=600)
    try:
        hello = "import sys; sys.path.insert(0, '/srv/hello'); import hello"
        said = docker_engine.docker("run", "--rm", *SAFE, reference, "python3", "-c", hello)
        assert said == "3", "compiled, and checked by content"
    finally:
        docker_engine.docker("image", "rm", reference)
