"""The artifact store on a real folder."""

import hashlib
import os
import stat
import time
from pathlib import Path

import pytest

from common.errors import Conflict, FairleadError, InvalidInput, NotFound, TooLarge
from integrations.artifacts.store import ArtifactStore, digest_of, digest_of_folder, folder_of
from tests._support.small_disk import small_disk

CONTENT = b"the bytes of a model"


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", max_bytes=100)


def put(store: ArtifactStore, content: bytes = CONTENT, filename: str = "model.onnx"):
    with store.begin(filename) as writer:
        for start in range(0, len(content), 7):
            writer.write(content[start : start + 7])
        return writer.commit()


def everything(store: ArtifactStore) -> list[str]:
    return sorted(path.relative_to(store.folder).as_posix() for path in store.folder.rglob("*") if path.is_file())


def test_file_is_stored_under_its_digest(store):
    stored = put(store, filename="Some Model.ONNX")
    sha256 = hashlib.sha256(CONTENT).hexdigest()
    assert stored.digest == "sha256:" + hashlib.sha256(f"model.onnx\0{sha256}\n".encode()).hexdigest()
    assert (folder_of(stored.uri) / "model.onnx").read_bytes() == CONTENT
    assert (stored.size_bytes, stored.files) == (len(CONTENT), {"model.onnx": sha256})
    assert everything(store) == [f"{stored.digest.removeprefix('sha256:')}/model.onnx"]
    assert store.get(stored.digest) == stored
    store.verify(stored.digest)


def test_stored_files_are_for_reading_by_everybody_and_for_writing_by_nobody(store):
    place = folder_of(put(store).uri)
    assert (stat.S_IMODE(place.stat().st_mode), stat.S_IMODE((place / "model.onnx").stat().st_mode)) == (0o755, 0o444)


def test_same_bytes_again_are_the_same_artifact(store):
    assert put(store) == put(store, filename="other.onnx")
    assert len(everything(store)) == 1


def test_writer_tells_digest_and_size_as_they_come(store):
    with store.begin("m.onnx") as writer:
        writer.write(CONTENT)
        assert (writer.sha256, writer.size_bytes) == (hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))


@pytest.mark.parametrize(
    ("filename", "said"),
    [
        pytest.param("../model.onnx", "not a file name", id="a path upwards"),
        pytest.param("/etc/model.onnx", "not a file name", id="an absolute path"),
        pytest.param("a\\b.onnx", "not a file name", id="a path of another system"),
        pytest.param("a\0.onnx", "not a file name", id="a zero byte"),
        pytest.param("a\n.onnx", "not a file name", id="a line break"),
        pytest.param("\u202exnno.onnx", "not a file name", id="a mark that turns the writing round"),
        pytest.param("", "not a file name", id="nothing"),
        pytest.param("model.h5", r"accepted are \*\.onnx", id="another format"),
        pytest.param("labels.txt", "accepted are", id="a text that is no trees"),
        pytest.param("onnx", r"accepted are \*\.onnx", id="no suffix"),
    ],
)
def test_name_is_refused(store, filename, said):
    with pytest.raises(InvalidInput, match=said):
        store.begin(filename)
    assert not store.folder.exists() or everything(store) == []


def test_too_many_bytes_leave_nothing(store):
    with pytest.raises(TooLarge, match="100 bytes"), store.begin("m.onnx") as writer:
        writer.write(bytes(101))
    assert everything(store) == []


def test_exactly_the_limit_is_not_too_many(store):
    assert put(store, bytes(100)).size_bytes == 100


def test_empty_file_is_refused(store):
    with pytest.raises(InvalidInput, match="empty"):
        put(store, b"")
    assert everything(store) == []


def test_broken_off_upload_leaves_nothing(store):
    with store.begin("m.onnx") as writer:
        writer.write(CONTENT)
    assert everything(store) == []


def test_upload_of_a_killed_process_is_dropped_later(store):
    old, new = store.begin("m.onnx"), store.begin("m.onnx")
    yesterday = time.time() - 25 * 3600
    folder = next(path for path in (store.folder / ".incoming").iterdir() if path == old._folder)
    os.utime(folder, (yesterday, yesterday))
    put(store)
    assert not folder.exists()
    new.write(CONTENT)
    new.commit()
    old._file.close()


@pytest.mark.parametrize("change", ["edit", "add", "remove"])
def test_changed_files_are_found(store, change):
    stored = put(store)
    place = folder_of(stored.uri)
    match change:
        case "edit":
            (place / "model.onnx").unlink()
            (place / "model.onnx").write_bytes(b"other bytes")
        case "add":
            (place / "more.bin").write_bytes(b"x")
        case "remove":
            (place / "model.onnx").unlink()
    with pytest.raises(Conflict, match="was changed on disk"):
        store.verify(stored.digest)


def test_deleted_artifact_is_gone_and_deleting_it_again_is_no_error(store):
    stored = put(store)
    store.delete(stored.digest)
    store.delete(stored.digest)
    assert everything(store) == []
    with pytest.raises(NotFound):
        store.verify(stored.digest)


@pytest.mark.parametrize("digest", ["", "sha256:", "sha256:../../../etc", "md5:" + "0" * 64, "sha256:" + "Z" * 64])
def test_only_a_digest_becomes_a_path(store, digest):
    for use in (store.get, store.verify, store.delete):
        with pytest.raises(InvalidInput, match="not an artifact digest"):
            use(digest)


def test_digest_does_not_depend_on_order_and_counts_paths():
    assert digest_of({"a": "1", "b": "2"}) == digest_of({"b": "2", "a": "1"})
    assert digest_of({"a": "1", "b": "2"}) != digest_of({"a": "2", "b": "1"})


def test_digest_of_a_folder_is_that_of_its_files(tmp_path):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "model.onnx").write_bytes(b"m")
    (tmp_path / "config.pbtxt").write_bytes(b"c")
    files = {"1/model.onnx": hashlib.sha256(b"m").hexdigest(), "config.pbtxt": hashlib.sha256(b"c").hexdigest()}
    assert digest_of_folder(tmp_path) == digest_of(files)


@pytest.mark.parametrize("uri", ["s3://bucket/key", "file://elsewhere/x", "relative/path", "file:relative"])
def test_only_local_folders_are_understood(uri):
    with pytest.raises(FairleadError, match="file:///absolute/path"):
        folder_of(uri)


def test_folder_of_a_name_with_spaces(tmp_path):
    place = tmp_path / "with space & #"
    assert folder_of(place.as_uri()) == place


def test_a_full_disk_is_said_of_the_store_and_nothing_of_the_upload_is_left(tmp_path: Path):
    with small_disk(tmp_path / "disk", 256) as disk:
        store = ArtifactStore(disk / "artifacts", max_bytes=1 << 30)
        with pytest.raises(OSError, match="No space left on device") as refused:
            put(store, os.urandom(1_000_000))
        assert refused.value.filename == str(store.folder)
        assert everything(store) == []
        put(store)
