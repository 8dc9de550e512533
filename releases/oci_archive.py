"""OCI archives of one image: an image layout (OCI: image-spec) in a tar, which `docker load` and `podman load` read.

Engines write such archives with times and orders of their own; `normalised` writes them in one form, so that equal
images are equal files. `verified` accepts this form alone, and never unpacks it: archives from elsewhere are hostile.

    oci-layout          the version of the layout
    index.json          the image's name, and the digest of its manifest
    manifest.json       the same for Docker before 25, which reads no index.json
    blobs/sha256/HEX    manifest, configuration and layers, each under the digest by which another document names it
"""

import hashlib
import io
import json
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from releases.errors import ReleaseError
from releases.folder import LARGEST_TEXT_BYTES, document

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
_LAYOUT, _INDEX, _DOCKERS = "oci-layout", "index.json", "manifest.json"
_BLOBS = "blobs/sha256/"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_MOST_ENTRIES = 500
_BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class _Blob:
    """A blob as a document names it; the size is in bytes."""

    digest: str
    size: int

    @property
    def entry(self) -> str:
        return _BLOBS + self.digest.removeprefix("sha256:")


@dataclass(frozen=True, slots=True)
class _Image:
    manifest: _Blob
    configuration: _Blob
    layers: tuple[_Blob, ...]

    @property
    def blobs(self) -> tuple[_Blob, ...]:
        return self.manifest, self.configuration, *self.layers


class _Archive:
    """A tar that is read at the places of its entries.

    Args:
        entries: offset and size of each file, in bytes, by its name.
        name: of the archive, for messages.
    """

    def __init__(self, file: BinaryIO, entries: Mapping[str, tuple[int, int]], name: str) -> None:
        self._file, self.entries, self.name = file, entries, name

    def text(self, entry: str) -> bytes:
        """Return a document; raises ReleaseError where it is missing or beyond a mebibyte."""
        size = self.entries.get(entry, (0, LARGEST_TEXT_BYTES + 1))[1]
        if size > LARGEST_TEXT_BYTES:
            raise _unusable(self.name)
        return b"".join(self.blocks(entry))

    def blocks(self, entry: str) -> Iterator[bytes]:
        """Yield the content of an entry."""
        offset, left = self.entries[entry]
        self._file.seek(offset)
        while left > 0:
            block = self._file.read(min(left, _BLOCK_BYTES))
            if not block:
                raise _unusable(self.name)
            left -= len(block)
            yield block

    def image(self) -> _Image:
        """Return what the index names; raises ReleaseError where that is not one image."""
        try:
            (named,) = document(self.text(_INDEX), self.name)["manifests"]
            manifest = _blob(named)
            found = document(self.text(manifest.entry), self.name)
            if found.get("mediaType", MANIFEST_TYPE) != MANIFEST_TYPE:
                raise ValueError(found["mediaType"])
            return _Image(manifest, _blob(found["config"]), tuple(_blob(each) for each in found["layers"]))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _unusable(self.name) from error


def normalised(archive: Path, reference: str, made_s: int) -> str:
    """Replace an engine's archive by one in the form above; returns the image's digest.

    Args:
        reference: the image's name with its tag.
        made_s: the time of all entries, in seconds since 1970.

    Raises:
        ReleaseError: it is no OCI archive of one image.
    """
    made = archive.with_name(f"{archive.name}.part")
    try:
        with archive.open("rb") as file, tarfile.open(fileobj=file, mode="r:") as tar:
            entries = {each.name: (each.offset_data, each.size) for each in tar if each.isreg()}
            image = _Archive(file, entries, archive.name).image()
            with tarfile.open(made, "w", format=tarfile.USTAR_FORMAT) as written:
                for entry, content in _documents(image, reference).items():
                    written.addfile(_entry(entry, len(content), made_s), io.BytesIO(content))
                for entry in sorted({blob.entry for blob in image.blobs}):
                    written.addfile(_entry(entry, tar.getmember(entry).size, made_s), tar.extractfile(entry))
        with made.open("rb") as file:
            digest = verified(file, archive.name, reference)
        made.replace(archive)
    except (tarfile.TarError, OSError, KeyError) as error:
        raise _unusable(archive.name) from error
    return digest


def verified(file: BinaryIO, name: str, reference: str) -> str:
    """Return the digest of the image in an archive, each blob of which has its digest and size.

    Args:
        file: the archive, at its beginning.
        name: of the archive, for messages.
        reference: by which engines have to load the image.

    Raises:
        ReleaseError: the archive is damaged, has other entries, or names the image otherwise.
    """
    archive = _Archive(file, _entries(file, name), name)
    image = archive.image()
    for entry, content in _documents(image, reference).items():
        if archive.text(entry) != content:
            raise ReleaseError(f"{entry} in {name} names something else than {reference}: do not use it")
    known = {_LAYOUT, _INDEX, _DOCKERS, *(blob.entry for blob in image.blobs)}
    if more := sorted(archive.entries.keys() - known):
        raise ReleaseError(f"{name} has an entry {more[0][:80]!r}, which is none of its image: do not use it")
    for blob in image.blobs:
        found = hashlib.sha256()
        if archive.entries.get(blob.entry, (0, -1))[1] != blob.size:
            raise ReleaseError(f"{name} has no {blob.digest[:19]} of {blob.size} bytes: fetch it again")
        for block in archive.blocks(blob.entry):
            found.update(block)
        if f"sha256:{found.hexdigest()}" != blob.digest:
            raise ReleaseError(f"{name} has other bytes than those of {blob.digest[:19]}: do not use it")
    return image.manifest.digest


def _documents(image: _Image, reference: str) -> dict[str, bytes]:
    """Return the documents of an archive, by entry."""
    named = {
        "mediaType": MANIFEST_TYPE,
        "digest": image.manifest.digest,
        "size": image.manifest.size,
        # The first names it for Podman, the second for containerd and Docker.
        "annotations": {"org.opencontainers.image.ref.name": reference, "io.containerd.image.name": reference},
    }
    dockers = {
        "Config": image.configuration.entry,
        "RepoTags": [reference],
        "Layers": [layer.entry for layer in image.layers],
    }
    made: dict[str, Any] = {
        _LAYOUT: {"imageLayoutVersion": "1.0.0"},
        _INDEX: {"schemaVersion": 2, "manifests": [named]},
        _DOCKERS: [dockers],
    }
    return {entry: json.dumps(content, sort_keys=True).encode() for entry, content in made.items()}


def _entries(file: BinaryIO, name: str) -> dict[str, tuple[int, int]]:
    """Return offset and size of each file by its name; raises ReleaseError for a tar with anything but plain files.

    Extended headers, whose size has no limit, are refused unread.
    """
    found: dict[str, tuple[int, int]] = {}
    end = file.seek(0, io.SEEK_END)
    offset = 0
    while offset < end:
        file.seek(offset)
        header = file.read(tarfile.BLOCKSIZE)
        if not header.strip(b"\0"):
            break
        try:
            about = tarfile.TarInfo.frombuf(header, "ascii", "strict")
        except (tarfile.HeaderError, ValueError) as error:
            raise _unusable(name) from error
        offset += tarfile.BLOCKSIZE
        if about.type != tarfile.REGTYPE or not 0 <= about.size <= end - offset:
            raise _unusable(name)
        if about.name in found or len(found) == _MOST_ENTRIES:
            raise ReleaseError(f"{name} has an entry twice, or more than {_MOST_ENTRIES}: do not use it")
        found[about.name] = offset, about.size
        offset += -(-about.size // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    return found


def _blob(named: Any) -> _Blob:
    """Return the blob that a descriptor names; raises ValueError where it names none."""
    digest, size = named["digest"], named["size"]
    if not isinstance(digest, str) or not _DIGEST.fullmatch(digest) or type(size) is not int:
        raise ValueError(named)
    return _Blob(digest, size)


def _entry(name: str, size: int, made_s: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.mtime, made.mode = size, made_s, 0o644
    return made


def _unusable(name: str) -> ReleaseError:
    return ReleaseError(f"{name} is no OCI archive of one image: build it again")
