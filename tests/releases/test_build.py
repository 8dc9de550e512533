"""A release is made of a commit, and made again it is the same to the byte."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import helm_python as helm
import pytest
import yaml

from releases import Order, ReleaseError, make_release, verify_release
from releases.__main__ import main
from releases.archives import chart, is_ignored, packed
from releases.images import digests_file
from releases.signatures import public_key
from releases.source import Source, version_of
from tests.charts.chart import pods
from tests.releases._support.release import DIGESTS, GIT, REGISTRY, ROOT, Release, git, release, repository

__all__ = ["release", "repository"]


def python(release: Release, *arguments: str, cwd: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command line elsewhere, with another time zone and mask of modes."""
    command = [sys.executable, "-m", "releases", "--root", str(release.repository), *arguments]
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = {**GIT, "PYTHONPATH": paths, "TZ": "Asia/Tokyo", "LC_ALL": "C"}
    return subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True, check=False, umask=0o077)


def test_a_release_built_again_is_equal_byte_by_byte(release: Release, tmp_path: Path) -> None:
    key = str(release.public_key)
    done = python(release, "verify", str(release.folder), "--public-key", key, "--rebuild", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    commit = git(release.repository, "rev-parse", "HEAD").strip()
    first, last = done.stdout.splitlines()
    assert f"is Fairlead 0.1.0 of the commit {commit}, signed by the key " in first
    assert last == "built again: 10 files are equal byte by byte"


def test_a_release_has_its_files_and_what_it_was_made_of(release: Release) -> None:
    described = verify_release(release.folder, public_key(release.public_key))
    assert (described.version, described.registry) == ("0.1.0", REGISTRY)
    assert {"hatchling", "python", "zlib"} == described.tools.keys()
    assert {path.name for path in release.folder.iterdir()} == {
        "SHA256SUMS",
        "SHA256SUMS.sig",
        "control-plane-0.1.0.cdx.json",
        "fairlead-0.1.0-py3-none-any.whl",
        "fairlead-0.1.0-py3-none-any.whl.cdx.json",
        "fairlead-0.1.0.tar.gz",
        "fairlead-0.2.0.tgz",
        "fairlead-kustomize-0.1.0.tar.gz",
        "fairlead-member-0.2.0.tgz",
        "image-digests.yaml",
        "image-values.yaml",
        "provenance.intoto.json",
        "runtime-cpu-0.1.0.cdx.json",
    }
    envelope = json.loads((release.folder / "provenance.intoto.json").read_text())
    assert len(envelope["signatures"]) == 1


def test_the_chart_runs_the_images_of_its_release_by_digest(release: Release) -> None:
    given = yaml.safe_load((release.folder / "image-values.yaml").read_text())
    with helm.Chart.load(release.folder / "fairlead-0.2.0.tgz") as loaded:
        made = loaded.render(given, name="fairlead", namespace="fairlead", revision=1, is_install=True)
    found = [
        each
        for name, text in made.items()
        if name.endswith(".yaml")
        for each in yaml.safe_load_all(text)
        if isinstance(each, dict)
    ]
    images = {container["image"] for _, pod in pods(found) for container in pod["containers"]}
    assert f"{REGISTRY}/control-plane@{DIGESTS[f'{REGISTRY}/control-plane:0.1.0']}" in images
    assert f"{REGISTRY}/serving-runtime@{DIGESTS[f'{REGISTRY}/serving-runtime:0.1.0']}" in "\n".join(made.values())


def test_a_chart_without_values_finds_its_digests_in_its_own_file(tmp_path: Path) -> None:
    digest = f"sha256:{3:064x}"
    name, content = chart(
        Source("0" * 40, 0, "0.1.0", ROOT), "fairlead", digests_file({"fairlead/control-plane:0.1.0": digest})
    )
    (tmp_path / name).write_bytes(content)
    with helm.Chart.load(tmp_path / name) as loaded:
        made = loaded.render({}, name="fairlead", namespace="fairlead", revision=1, is_install=True)
    assert f"fairlead/control-plane@{digest}" in "\n".join(made.values())
    with tarfile.open(tmp_path / name) as archive:
        assert not any("/ci/" in each for each in archive.getnames())


def refused(capsys: pytest.CaptureFixture[str], release: Release, *arguments: str) -> str:
    """Return the one sentence by which the command line refuses."""
    assert main(["--root", str(release.repository), "make", *arguments]) == 1
    written = capsys.readouterr()
    assert (written.out, written.err.count("\n")) == ("", 1)
    return written.err


def test_a_dirty_tree_is_refused_in_one_sentence(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (release.repository / "new.txt").write_text("new")
    try:
        said = refused(capsys, release, "--out", str(tmp_path / "out"))
    finally:
        (release.repository / "new.txt").unlink()
    assert said == "a release is made of a commit, and new.txt differs from it: commit or remove it first.\n"
    assert not (tmp_path / "out").exists()


def test_a_folder_with_files_is_not_overwritten(release: Release, tmp_path: Path) -> None:
    (tmp_path / "own.txt").write_text("own")
    with pytest.raises(ReleaseError, match="is there already: remove it, or name another folder by OUT="):
        make_release(release.repository, tmp_path, Order())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(("--registry", "https://a"), "REGISTRY is 'https://a', no name such as", id="an address"),
        pytest.param(("--images", "runtime-tpu"), "IMAGES has 'runtime-tpu'; there are control-plane,", id="no image"),
        pytest.param(("--key", "/nowhere.pem"), "RELEASE_KEY /nowhere.pem is no unencrypted PEM", id="no key"),
        pytest.param(("--digests", "/nowhere"), "IMAGE_DIGESTS /nowhere cannot be read", id="no digests"),
    ],
)
def test_a_wrong_order_is_refused_in_one_sentence(
    release: Release, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, str], said: str
) -> None:
    assert refused(capsys, release, "--out", str(tmp_path / "out"), *arguments).startswith(said)
    assert list(tmp_path.iterdir()) == []


def test_archives_of_equal_files_are_equal() -> None:
    assert packed({"b": b"2", "a": b"1"}, 5) == packed({"a": b"1", "b": b"2"}, 5)
    assert packed({"a": b"1"}, 5) != packed({"a": b"1"}, 6)


@pytest.mark.parametrize(
    ("path", "ignored"),
    [("ci/a.yaml", True), ("templates/ci/a.yaml", True), ("old.tgz", True), ("ci", False), ("values.yaml", False)],
)
def test_helms_list_of_ignored_files_is_followed(path: str, ignored: bool) -> None:
    assert is_ignored(path, ["ci/", "*.tgz"]) is ignored


def test_a_version_that_would_be_a_path_is_refused() -> None:
    with pytest.raises(ReleaseError, match=r"is not like 1\.2\.3"):
        version_of('[project]\nversion = "../1"\n')
