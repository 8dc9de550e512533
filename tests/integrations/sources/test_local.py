"""Fetching from folders of this machine."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from common.errors import FairleadError, InvalidInput, NotFound, TooLarge, Unavailable
from common.uris import parse, parse_prefixes
from integrations.artifacts.store import ArtifactStore, StoredArtifact
from integrations.sources import local

Fetch = Callable[..., StoredArtifact]
Names = Callable[[], list[str]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "digits" / "1").mkdir(parents=True)
    (root / "digits" / "config.pbtxt").write_text("max_batch_size: 3")
    (root / "digits" / "1" / "model.onnx").write_bytes(b"model")
    (tmp_path / "secret.onnx").write_bytes(b"secret")
    return root


def test_a_file_and_a_folder_come_in(root: Path, fetch: Fetch) -> None:
    file = fetch((root / "digits/1/model.onnx").as_uri(), allowed=[root.as_uri()])
    assert list(file.files) == ["model.onnx"]
    folder = fetch((root / "digits").as_uri(), allowed=[root.as_uri()])
    assert sorted(folder.files) == ["1/model.onnx", "config.pbtxt"]
    assert folder.size_bytes == len("max_batch_size: 3") + len("model")
    assert fetch((root / "digits").as_uri() + "/", allowed=[root.as_uri()]).digest == folder.digest


def test_a_folder_is_the_same_version_as_its_archive(root: Path, fetch: Fetch) -> None:
    with tarfile.open(root / "digits.tar.gz", "w:gz") as archive:
        archive.add(root / "digits", "digits")
    packed = fetch((root / "digits.tar.gz").as_uri(), allowed=[root.as_uri()])
    assert packed.digest == fetch((root / "digits").as_uri(), allowed=[root.as_uri()]).digest


def test_links_within_the_root_may_lead_to_what_is_imported(root: Path, fetch: Fetch) -> None:
    (root / "latest").symlink_to("digits")
    (root / "latest.onnx").symlink_to("digits/1/model.onnx")
    assert fetch((root / "latest").as_uri(), allowed=[root.as_uri()]).files.keys() == {"1/model.onnx", "config.pbtxt"}
    assert fetch((root / "latest.onnx").as_uri(), allowed=[root.as_uri()]).size_bytes == 5


def test_a_root_that_is_a_link_itself_is_what_it_leads_to(root: Path, fetch: Fetch, tmp_path: Path) -> None:
    (tmp_path / "linked").symlink_to(root)
    assert fetch((tmp_path / "linked/digits").as_uri(), allowed=[(tmp_path / "linked").as_uri()]).size_bytes == 22


@pytest.mark.parametrize("name", ["out.onnx", "away/secret.onnx", "digits/1/../../../secret.onnx"])
def test_nothing_outside_of_the_root_comes_in(
    root: Path, fetch: Fetch, left_behind: Names, tmp_path: Path, name: str
) -> None:
    (root / "out.onnx").symlink_to(tmp_path / "secret.onnx")
    (root / "away").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match=r"leads out|'..'"):
        fetch(f"{root.as_uri()}/{name}", allowed=[root.as_uri()])
    assert left_behind() == []


@pytest.mark.parametrize("target", ["../secret.onnx", "digits", "digits/config.pbtxt"])
def test_links_in_a_folder_are_refused(root: Path, fetch: Fetch, left_behind: Names, target: str) -> None:
    (root / "digits" / "labels.txt").symlink_to(root / target)
    with pytest.raises(InvalidInput, match=r"labels\.txt is a link"):
        fetch((root / "digits").as_uri(), allowed=[root.as_uri()])
    assert left_behind() == []


def test_a_part_of_the_path_that_becomes_a_link_later_is_not_followed(root: Path, tmp_path: Path) -> None:
    place = root / "digits" / "1" / "model.onnx"
    (found,) = local.files_at(parse(place.as_uri()), parse_prefixes([root.as_uri()]), max_files=5)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.onnx").write_bytes(b"other")
    (root / "digits").rename(root / "before")
    (root / "digits").symlink_to(tmp_path)
    with pytest.raises(InvalidInput, match="cannot be opened as a plain file"), found.open():
        pass


def test_what_is_no_plain_file_is_refused_and_not_waited_for(root: Path, fetch: Fetch, left_behind: Names) -> None:
    os.mkfifo(root / "digits" / "1" / "pipe")
    with pytest.raises(InvalidInput, match="is no plain file"):
        fetch((root / "digits").as_uri(), allowed=[root.as_uri()])
    assert left_behind() == []


def test_a_file_that_changes_while_it_is_read_is_read_again_later(root: Path, fetch: Fetch, left_behind: Names) -> None:
    place = root / "digits" / "1" / "model.onnx"

    def write(done: int, total: int | None) -> None:
        if done:
            place.write_bytes(b"MODEL")
            os.utime(place, ns=(1, 1))

    with pytest.raises(Unavailable, match="was changed while it was read"):
        fetch(place.as_uri(), allowed=[root.as_uri()], progress=write)
    assert left_behind() == []


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("nowhere.onnx", NotFound, "there is nothing at"),
        ("digits/config.pbtxt", InvalidInput, "not a model file that can be served"),
        ("empty.onnx", InvalidInput, "is empty"),
        ("bare", InvalidInput, "has no model file"),
        ("many", TooLarge, "more than the 5 files"),
    ],
)
def test_what_is_no_model_is_refused(
    root: Path, fetch: Fetch, left_behind: Names, name: str, error: type[FairleadError], told: str
) -> None:
    (root / "empty.onnx").touch()
    for folder, count in (("bare", 1), ("many", 6)):
        (root / folder).mkdir()
        for number in range(count):
            (root / folder / f"{number}.txt").write_text("x")
    with pytest.raises(error, match=told):
        fetch((root / name).as_uri(), allowed=[root.as_uri()])
    assert left_behind() == []


def test_a_digest_of_a_folder_is_no_sha256(root: Path, fetch: Fetch) -> None:
    with pytest.raises(InvalidInput, match="is a folder, and a sha256 is of one file"):
        fetch((root / "digits").as_uri(), allowed=[root.as_uri()], sha256="0" * 64)


def test_what_a_killed_worker_left_goes_with_the_next_try(root: Path, fetch: Fetch, store: ArtifactStore) -> None:
    for left in ("import-1-abc", "import-12-abc", "upload-abc"):
        (store.folder / ".incoming" / left).mkdir(parents=True)
        (store.folder / ".incoming" / left / "model.onnx").write_bytes(b"half")
    fetch((root / "digits").as_uri(), allowed=[root.as_uri()])
    assert sorted(path.name for path in (store.folder / ".incoming").iterdir()) == ["import-12-abc", "upload-abc"]
