import os
from pathlib import Path

import pytest

from common.errors import Conflict, NotFound
from integrations.artifacts.store import digest_of_folder
from integrations.clusters.local import model_repository
from integrations.clusters.local.model_repository import check_artifact


@pytest.fixture
def artifact(tmp_path: Path) -> Path:
    place = tmp_path / "a" / "1"
    place.mkdir(parents=True)
    (place / "model.onnx").write_bytes(b"model")
    return tmp_path / "a"


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the folders of which every byte was read."""
    read: list[Path] = []

    def digest(folder: Path) -> str:
        read.append(folder)
        return digest_of_folder(folder)

    monkeypatch.setattr(model_repository, "digest_of_folder", digest)
    return read


def check(artifact: Path, digest: str) -> None:
    check_artifact(artifact, digest, artifact.with_suffix(".seal"), revision="digits-00001")


def test_what_did_not_change_is_read_once(artifact: Path, hashed: list[Path]) -> None:
    digest = digest_of_folder(artifact)
    for _ in range(3):
        check(artifact, digest)
    os.link(artifact / "1/model.onnx", artifact.parent / "linked")  # as repositories do
    check(artifact, digest)
    assert hashed == [artifact]


def test_what_was_only_touched_is_read_again_and_right(artifact: Path, hashed: list[Path]) -> None:
    digest = digest_of_folder(artifact)
    check(artifact, digest)
    os.utime(artifact / "1/model.onnx", ns=(1, 1))
    check(artifact, digest)
    check(artifact, digest)
    assert len(hashed) == 2


@pytest.mark.parametrize("change", ["written", "replaced", "added", "removed"])
def test_a_change_is_told_each_time(artifact: Path, change: str) -> None:
    digest, file = digest_of_folder(artifact), artifact / "1/model.onnx"
    check(artifact, digest)
    if change == "written":
        file.write_bytes(b"other")
        os.utime(file, ns=(1, 1))
    elif change == "replaced":
        stat = file.stat()
        (artifact.parent / "new").write_bytes(b"other")
        (artifact.parent / "new").replace(file)
        os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    elif change == "added":
        (artifact / "labels.txt").write_text("x")
    else:
        file.unlink()
    for _ in range(2):
        with pytest.raises(Conflict, match=r"revision digits-00001 at .* was changed on disk: expected sha256:"):
            check(artifact, digest)


def test_a_seal_of_another_digest_or_that_cannot_be_read_counts_for_nothing(artifact: Path, hashed: list[Path]) -> None:
    digest = digest_of_folder(artifact)
    check(artifact, digest)
    with pytest.raises(Conflict):
        check(artifact, "sha256:" + "0" * 64)
    artifact.with_suffix(".seal").write_text("{")
    check(artifact, digest)
    assert len(hashed) == 3


def test_an_artifact_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="push the model version again"):
        check(tmp_path / "nowhere", "sha256:" + "0" * 64)
