"""Archives, good and hostile, through the artifact store."""

import gzip
import io
import struct
import tarfile
import zipfile
from pathlib import Path

import pytest

from common.errors import FairleadError, InvalidInput, TooLarge
from integrations.artifacts.store import ArtifactStore, StoredArtifact, digest_of_folder, folder_of

MODEL = {"config.pbtxt": b"max_batch_size: 4", "1/model.onnx": b"the bytes of a model", "labels/de.txt": b"a\nb"}


@pytest.fixture
def store(tmp_path: Path) -> ArtifactStore:
    return ArtifactStore(tmp_path / "artifacts", max_bytes=100_000, max_files=5)


def put(store: ArtifactStore, content: bytes, filename: str = "model.tar") -> StoredArtifact:
    with store.begin(filename) as writer:
        writer.write(content)
        return writer.commit()


def tar(files: dict[str, bytes], *extra: tarfile.TarInfo) -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in extra:
            archive.addfile(member)
    return content.getvalue()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED, mode: int = 0o100644) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = method
            entry.external_attr = mode << 16
            archive.writestr(entry, data)
    return content.getvalue()


def special(kind: bytes, name: str = "1/link", target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = kind
    member.linkname = target
    return member


def left_over(store: ArtifactStore) -> list[str]:
    return [path.name for path in store.folder.rglob("*") if path.name != ".incoming"]


def wrapped(files: dict[str, bytes], top: str = "digits") -> dict[str, bytes]:
    return {f"{top}/{name}": content for name, content in files.items()}


@pytest.mark.parametrize(
    ("filename", "content"),
    [
        pytest.param("m.tar", tar(MODEL), id="a tar"),
        pytest.param("m.tar", tar({f"./{name}": data for name, data in MODEL.items()}), id="a tar of ."),
        pytest.param("m.tar", tar(wrapped(MODEL), special(tarfile.DIRTYPE, "digits/empty")), id="a tar of a folder"),
        pytest.param("m.TAR.GZ", gzip.compress(tar(MODEL)), id="a compressed tar"),
        pytest.param("m.tgz", gzip.compress(tar(wrapped(MODEL))), id="a compressed tar of a folder"),
        pytest.param("m.zip", zipped(MODEL), id="a zip"),
        pytest.param("m.zip", zipped(wrapped(MODEL), zipfile.ZIP_STORED, mode=0), id="a zip of a folder"),
    ],
)
def test_however_it_is_packed_it_is_the_same_artifact(store: ArtifactStore, filename: str, content: bytes) -> None:
    stored = put(store, content, filename)
    folder = folder_of(stored.uri)
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert found == MODEL
    assert stored.digest == digest_of_folder(folder) == put(store, tar(MODEL)).digest
    assert (stored.size_bytes, set(stored.files)) == (sum(map(len, MODEL.values())), set(MODEL))
    assert list((store.folder / ".incoming").iterdir()) == []
    store.verify(stored.digest)


def test_a_folder_with_only_the_file_is_the_file(store: ArtifactStore) -> None:
    assert put(store, tar({"model.onnx": b"x"})) == put(store, b"x", "model.onnx")


LONG = {f"1/{n}": b"" for n in range(5)}


@pytest.mark.parametrize(
    ("filename", "content", "kind", "said"),
    [
        pytest.param("m.tar", tar({**MODEL, "../x": b""}), InvalidInput, "not a path below", id="a path upwards"),
        pytest.param("m.tar", tar({**MODEL, "/etc/x": b""}), InvalidInput, "not a path below", id="an absolute path"),
        pytest.param("m.tar", tar({**MODEL, "a//b": b""}), InvalidInput, "not a path below", id="an empty name"),
        pytest.param("m.tar", tar({**MODEL, "a\\b": b""}), InvalidInput, "not a path below", id="a backslash"),
        pytest.param("m.tar", tar({**MODEL, "a\nb": b""}), InvalidInput, "not a path below", id="a line break"),
        pytest.param("m.tar", tar({**MODEL, "x" * 256: b""}), InvalidInput, "not a path below", id="a long name"),
        pytest.param("m.tar", tar({**MODEL, "a/" * 8 + "b": b""}), InvalidInput, "8 folders deep", id="a deep path"),
        pytest.param("m.zip", zipped({**MODEL, "../x": b""}), InvalidInput, "not a path below", id="upwards in a zip"),
        pytest.param("m.zip", zipped(MODEL, mode=0o120777), InvalidInput, "links are not taken", id="a link in a zip"),
        pytest.param("m.zip", zipped(MODEL, zipfile.ZIP_LZMA), InvalidInput, "not taken", id="another compression"),
        pytest.param(
            "m.tar",
            tar(MODEL, special(tarfile.SYMTYPE, target="/etc")),
            InvalidInput,
            "links are not taken",
            id="a link",
        ),
        pytest.param(
            "m.tar",
            tar(MODEL, special(tarfile.LNKTYPE, target="config.pbtxt")),
            InvalidInput,
            "links are not taken",
            id="a hard link",
        ),
        pytest.param("m.tar", tar(MODEL, special(tarfile.CHRTYPE)), InvalidInput, "no plain file", id="a device"),
        pytest.param("m.tar", tar(MODEL, special(tarfile.FIFOTYPE)), InvalidInput, "no plain file", id="a pipe"),
        pytest.param("m.tar", tar(MODEL) + tar(MODEL), InvalidInput, None, id="two archives in one"),
        pytest.param(
            "m.tar", tar({"a": b"", "a/1": b"", "model.onnx": b""}), InvalidInput, "is twice", id="a file as a folder"
        ),
        pytest.param(
            "m.tar", tar({"a/1": b"", "a": b"", "model.onnx": b""}), InvalidInput, "is twice", id="a folder as a file"
        ),
        pytest.param("m.tar", tar({**LONG, "1/model.onnx": b""}), TooLarge, "5 files", id="too many files"),
        pytest.param(
            "m.tar",
            tar({}, *(special(tarfile.DIRTYPE, f"d{n}") for n in range(60))),
            TooLarge,
            "more folders",
            id="too many folders",
        ),
        pytest.param("m.tgz", gzip.compress(bytes(10_000_000)), TooLarge, "100000 bytes", id="a gzip bomb"),
        pytest.param("m.zip", zipped({"model.onnx": bytes(200_000)}), TooLarge, "100000 bytes", id="a zip bomb"),
        pytest.param("m.tar", b"no archive at all", InvalidInput, "cannot be unpacked", id="no tar"),
        pytest.param("m.tgz", b"no archive at all", InvalidInput, "cannot be unpacked", id="no gzip"),
        pytest.param("m.zip", b"no archive at all", InvalidInput, "not a zip file", id="no zip"),
        pytest.param("m.tar", tar({"1/model.onnx": bytes(5000)})[:2000], InvalidInput, "unpacked", id="half a tar"),
        pytest.param("m.tgz", gzip.compress(tar(MODEL))[:-20], InvalidInput, "unpacked", id="half a gzip"),
        pytest.param(
            "m.tar",
            tar({}),
            InvalidInput,
            r"no model file \(\*\.onnx, .*model\.txt, .*\) in a version folder",
            id="nothing",
        ),
        pytest.param("m.tar", tar({"1/labels.txt": b""}), InvalidInput, "in 1/", id="a text that is no trees"),
        pytest.param("m.tar", tar({"1/weights.pt": b""}), InvalidInput, "in 1/", id="no model"),
        pytest.param("m.tar", tar({"sub/a.onnx": b"", "b": b""}), InvalidInput, "no model file", id="a hidden model"),
        pytest.param(
            "m.tar", tar({"1/model.onnx": b"", "2/model.onnx": b""}), InvalidInput, "1, 2; push", id="two versions"
        ),
    ],
)
def test_what_is_not_one_model_is_refused_and_nothing_stays(
    store: ArtifactStore, filename: str, content: bytes, kind: type[FairleadError], said: str | None
) -> None:
    if said is None:  # what follows the end of a tar is not part of it
        assert put(store, content, filename) == put(store, tar(MODEL))
        return
    with pytest.raises(kind, match=said):
        put(store, content, filename)
    assert left_over(store) == []


def test_a_header_that_promises_much_is_not_read(store: ArtifactStore) -> None:
    member = special(tarfile.XHDTYPE, "pax")
    member.size = 50 << 30
    header = member.tobuf(tarfile.GNU_FORMAT)
    with pytest.raises(InvalidInput, match="larger than any real one"):
        put(store, header + bytes(1024))
    assert left_over(store) == []


def test_an_encrypted_zip_is_refused(store: ArtifactStore) -> None:
    content = bytearray(zipped({"model.onnx": b"x"}))
    directory = content.index(b"PK\x01\x02")
    struct.pack_into("<H", content, directory + 8, 1)
    with pytest.raises(InvalidInput, match="encrypted"):
        put(store, bytes(content), "m.zip")


@pytest.mark.parametrize("filename", ["m.zip", "m.tgz"])
def test_an_archive_that_expands_far_is_refused_below_the_limit_of_bytes(tmp_path: Path, filename: str) -> None:
    store = ArtifactStore(tmp_path / "artifacts", max_bytes=1 << 30)
    files = {"1/model.onnx": bytes((64 << 20) + 1)}
    content = zipped(files) if filename == "m.zip" else gzip.compress(tar(files))
    sentence = rf"has {len(content)} bytes and unpacks to more than \d+, over 100 times as much"
    with pytest.raises(TooLarge, match=sentence):
        put(store, content, filename)
    assert left_over(store) == []


def test_a_small_archive_may_expand_to_something_usual(tmp_path: Path) -> None:
    store = ArtifactStore(tmp_path / "artifacts", max_bytes=1 << 30)
    assert put(store, zipped({"1/model.onnx": bytes(8 << 20)}), "m.zip").size_bytes == 8 << 20
