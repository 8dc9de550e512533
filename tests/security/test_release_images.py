"""Archives of images that somebody changed on their way: each attack is refused by one sentence, before use."""

import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from releases import ReleaseError, oci_archive, provenance, signatures, sums, verify_release
from releases.build import DIGESTS, finish
from releases.images import digests_file
from tests.releases._support.layout import pack, write_layout
from tests.releases._support.release import Release, release, repository

__all__ = ["release", "repository"]
REFERENCE = "registry.example.com/fairlead/control-plane:0.1.0"
NAME = "control-plane-0.1.0.oci.tar"
Entries = dict[str, bytes]


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Return the archive of an image, as a release has it."""
    layout = tmp_path / "layout"
    layout.mkdir()
    write_layout(layout)
    pack(layout, tmp_path / NAME)
    oci_archive.normalised(tmp_path / NAME, REFERENCE, 0)
    return tmp_path / NAME


def read(archive: Path) -> Entries:
    with tarfile.open(archive) as files:
        return {each.name: (files.extractfile(each) or io.BytesIO()).read() for each in files}


def write(archive: Path, entries: Entries) -> None:
    with tarfile.open(archive, "w", format=tarfile.USTAR_FORMAT) as files:
        for name, content in entries.items():
            about = tarfile.TarInfo(name)
            about.size = len(content)
            files.addfile(about, io.BytesIO(content))


def blob(entries: Entries, content: bytes) -> dict[str, object]:
    found = hashlib.sha256(content).hexdigest()
    entries[f"blobs/sha256/{found}"] = content
    return {"digest": f"sha256:{found}", "size": len(content)}


def one_bit(entries: Entries) -> None:
    """Change the layer, whose digest stays."""
    for name, content in entries.items():
        if content[:2] == b"\x1f\x8b":
            entries[name] = content[:-1] + bytes([content[-1] ^ 1])


def another_layer(entries: Entries) -> None:
    """Name a further layer under the digest of the manifest that was."""
    (named,) = json.loads(entries["index.json"])["manifests"]
    entry = f"blobs/sha256/{named['digest'].removeprefix('sha256:')}"
    manifest = json.loads(entries[entry])
    manifest["layers"].append(blob(entries, b"evil"))
    entries[entry] = json.dumps(manifest).encode()


def with_size(entries: Entries, size: object) -> None:
    index = json.loads(entries["index.json"])
    index["manifests"][0]["size"] = size
    entries["index.json"] = json.dumps(index).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(one_bit, "has other bytes than those of sha256:", id="a bit of a layer"),
        pytest.param(another_layer, "names something else|has other bytes|has no sha256", id="a further layer"),
        pytest.param(lambda entries: entries.update({"../../etc/cron.d/a": b"x"}), "has an entry '../..", id="a path"),
        pytest.param(lambda entries: blob(entries, b"payload"), "has an entry 'blobs/sha256/", id="a blob without use"),
        pytest.param(
            lambda entries: entries.update({"manifest.json": entries["manifest.json"].replace(b"control-", b"other-")}),
            f"manifest.json in {NAME} names something else than {REFERENCE}",
            id="another name for Docker",
        ),
        pytest.param(
            lambda entries: entries.update({"index.json": entries["index.json"].replace(b"control-", b"other-")}),
            f"index.json in {NAME} names something else than {REFERENCE}",
            id="another name for Podman",
        ),
        pytest.param(
            lambda entries: with_size(entries, -1), "is no OCI archive|names something else|has no", id="less"
        ),
        pytest.param(lambda entries: with_size(entries, 1e300), "is no OCI archive", id="no whole size"),
        pytest.param(lambda entries: entries.update({"index.json": b"[" * 100_000}), "is no JSON", id="deep JSON"),
        pytest.param(lambda entries: entries.update({"index.json": b" " * (2 << 20)}), "is no OCI archive", id="large"),
        pytest.param(lambda entries: entries.update({"index.json": b'{"manifests": [1]}'}), "is no OCI", id="a number"),
        pytest.param(
            lambda entries: entries.update({f"{number}": b"" for number in range(600)}), "more than 500", id="many"
        ),
    ],
)
def test_an_archive_that_was_changed_is_refused(archive: Path, change: Callable[[Entries], object], said: str) -> None:
    entries = read(archive)
    change(entries)
    write(archive, entries)
    with archive.open("rb") as file, pytest.raises(ReleaseError, match=said):
        oci_archive.verified(file, NAME, REFERENCE)


def header(kind: bytes, size: int) -> bytes:
    about = tarfile.TarInfo("index.json")
    about.type, about.size = kind, size
    return about.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize(
    "front",
    [
        pytest.param(header(tarfile.XHDTYPE, 1 << 40), id="an extended header of a terabyte"),
        pytest.param(header(tarfile.GNUTYPE_LONGNAME, 1 << 40), id="a name of a terabyte"),
        pytest.param(header(tarfile.REGTYPE, 1 << 62), id="a file that is longer than the archive"),
        pytest.param(header(tarfile.SYMTYPE, 0), id="a link"),
        pytest.param(header(tarfile.CHRTYPE, 0), id="a device"),
        pytest.param(header(tarfile.GNUTYPE_SPARSE, 0), id="a file with holes"),
        pytest.param(b"\xff" * 512, id="no header"),
        pytest.param(b"\x1f\x8b" + bytes(510), id="compressed"),
    ],
)
def test_an_archive_with_anything_but_files_is_refused_unread(archive: Path, front: bytes) -> None:
    archive.write_bytes(front + archive.read_bytes())
    with archive.open("rb") as file, pytest.raises(ReleaseError, match="is no OCI archive of one image"):
        oci_archive.verified(file, NAME, REFERENCE)


def finished(folder: Path, made: Release, digest: str) -> None:
    """Sign a release's folder again, as its makers could."""
    (folder / DIGESTS).write_text(digests_file({REFERENCE: digest}))
    envelope = json.loads((folder / provenance.NAME).read_text())
    described, _ = provenance.read(json.loads(signatures.opened(envelope, provenance.NAME, None)))
    for name in (provenance.NAME, sums.NAME, sums.SIGNATURE):
        (folder / name).unlink()
    finish(folder, described, signatures.private_key(made.key))


def test_a_release_has_the_images_that_it_names_though_all_is_signed(
    release: Release, archive: Path, tmp_path: Path
) -> None:
    folder, key = release.copy(tmp_path / "files"), signatures.public_key(release.public_key)
    (folder / NAME).write_bytes(archive.read_bytes())
    with archive.open("rb") as file:
        digest = oci_archive.verified(file, NAME, REFERENCE)
    finished(folder, release, digest)
    assert verify_release(folder, key).version == "0.1.0"
    finished(folder, release, f"sha256:{5:064x}")
    with pytest.raises(ReleaseError, match=f"{NAME} has the image {digest[:19]}, which {DIGESTS} does not name"):
        verify_release(folder, key)
    (folder / NAME).rename(folder / "runtime-cuda-0.1.0.oci.tar")
    finished(folder, release, digest)
    with pytest.raises(ReleaseError, match=r"runtime-cuda-0\.1\.0\.oci\.tar is of no image that"):
        verify_release(folder, key)
