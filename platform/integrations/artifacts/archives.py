"""Archive extraction: lays out an archive, or a folder from elsewhere, as Triton does. Called by the artifact store.

Either may be hostile: only plain files and folders come out of it, none of them outside of the target, no more of them
and no more bytes than allowed, whatever its headers say. It is never held in memory as a whole.

    config.pbtxt        optional, as are labels and the like; one folder around everything is taken off
    1/model.onnx        one version folder, or the model's file beside the others

or several such folders, one of which is an ensemble of the others.
"""

import gzip
import hashlib
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from common.errors import InvalidInput, TooLarge
from serving_runtime.shared.archive_limits import most_unpacked, refusal
from serving_runtime.shared.model_files import IN_FOLDERS, WITHOUT_CODE, ensemble_in, has_model, is_pickle

SUFFIXES = (".tar", ".tar.gz", ".tgz", ".zip")
_CHUNK_BYTES = 1 << 20
_MAX_HEADER_BYTES = 8 << 20  # largest read that a tar's extended header or a zip's directory may cause
_MAX_DEPTH = 8
_MAX_NAME_BYTES = 255
_ENTRIES_PER_FILE = 10
_PER_MEMBER_BYTES = 4096  # of a tar, beside the content of each file
_ZIP_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, gzip.BadGzipFile, EOFError, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an archive's content.

    Attributes:
        archive_bytes: size of the archive, which limits what may come out of it; None for a folder.
    """

    bytes: int
    files: int
    archive_bytes: int | None = None

    @property
    def most_bytes(self) -> int:
        """Return how many bytes may come out."""
        return self.bytes if self.archive_bytes is None else min(self.bytes, most_unpacked(self.archive_bytes))

    def too_large(self) -> TooLarge:
        """Return the error for more bytes."""
        if self.archive_bytes is None or self.most_bytes == self.bytes:
            return TooLarge(f"the archive has more than the {self.bytes} bytes that are allowed")
        return TooLarge(f"the archive {refusal(self.archive_bytes)}")


class Readable(Protocol):
    """A source of bytes; empty at its end."""

    def read(self, size: int = ..., /) -> bytes:
        """Return the next bytes."""


@dataclass(frozen=True, slots=True)
class Member:
    """A file in an archive or a folder elsewhere, under its name there."""

    name: str
    content: Readable


def unpack(archive: Path, target: Path, limits: Limits) -> dict[str, str]:
    """Write the archive's files under `target`, which is made, and return their sha256 in hex by path.

    Raises:
        InvalidInput: the archive is damaged, holds something that is no plain file, or is no model's folder.
        TooLarge: it holds more files or bytes than allowed, or far more bytes than it has itself.
    """
    limits = replace(limits, archive_bytes=archive.stat().st_size)
    try:
        return lay_down(_members(archive, limits), target, limits, "archive")
    except _BROKEN as error:
        raise InvalidInput(f"the archive cannot be unpacked: {error or type(error).__name__}") from error


def lay_down(members: Iterable[Member], target: Path, limits: Limits, what: str) -> dict[str, str]:
    """Write the members under `target`, as `unpack` does; `what` names their source, in a word."""
    target.mkdir()
    written: dict[str, str] = {}
    left = limits.most_bytes
    for member in members:
        name = _checked(member.name, written, what)
        if len(written) == limits.files:
            raise TooLarge(f"the {what} has more than the {limits.files} files that are allowed")
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written[name], size = _write(member.content, path, left, limits)
        left -= size
    files = _without_wrapping(target, written)
    check_layout(files)
    return files


def check_layout(paths: Iterable[str]) -> None:
    """Raise InvalidInput unless the paths are those of one version of one model, or of an ensemble and its models."""
    names = list(paths)
    if ensemble := ensemble_in(names):
        for part in sorted({name.split("/")[0] for name in names} - {ensemble}):
            _check_model([name.removeprefix(f"{part}/") for name in names if name.startswith(f"{part}/")])
        return
    _check_model(names)


def check_paths(paths: Iterable[str]) -> None:
    """Raise InvalidInput unless an archive of files at these paths is acceptable by their names."""
    names: dict[str, str] = {}
    for path in paths:
        names[_checked(path, names, "folder")] = ""
    wrapping = _wrapping(names)
    check_layout(name.removeprefix(f"{wrapping}/") if wrapping else name for name in names)


def _check_model(names: Sequence[str]) -> None:
    versions = sorted({name.split("/")[0] for name in names if "/" in name and name.split("/")[0].isdecimal()})
    if len(versions) > 1:
        raise InvalidInput(
            f"the folder has the version folders {', '.join(versions[:5])}; push them one by one, each is a version"
        )
    beside = versions[0] if versions else ""
    if not has_model(names, beside):
        if pickled := next((name for name in names if is_pickle(name)), ""):
            raise InvalidInput(f"{pickled[:200]!r} in the folder is {WITHOUT_CODE}")
        where = f"{beside}/" if beside else "a version folder such as 1/, or at its top"
        raise InvalidInput(
            f"the folder has no model file ({IN_FOLDERS}) in {where}; lay it out as Triton does: 1/model.onnx"
        )


def _members(archive: Path, limits: Limits) -> Iterator[Member]:
    if zipfile.is_zipfile(archive) and archive.suffix == ".zip":
        with archive.open("rb") as file, zipfile.ZipFile(_Bounded(file)) as opened:
            yield from _zip_members(opened)
    elif archive.suffix == ".zip":
        raise InvalidInput("the archive is not a zip file, though its name says so")
    else:
        plain = archive if archive.suffix == ".tar" else _gunzipped(archive, limits)
        with (
            plain.open("rb") as file,
            tarfile.open(fileobj=_Bounded(file), mode="r:") as opened_tar,
        ):
            yield from _tar_members(opened_tar, limits)


def _zip_members(archive: zipfile.ZipFile) -> Iterator[Member]:
    for entry in archive.infolist():
        mode = entry.external_attr >> 16
        if entry.is_dir():
            continue
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise InvalidInput(f"{entry.filename[:200]!r} in the archive is no plain file; links are not taken")
        if entry.flag_bits & 1:
            raise InvalidInput(f"{entry.filename[:200]!r} in the archive is encrypted; send it without a password")
        if entry.compress_type not in _ZIP_METHODS:
            raise InvalidInput(f"{entry.filename[:200]!r} in the archive is compressed in a way that is not taken")
        with archive.open(entry) as content:
            yield Member(entry.filename, content)


def _tar_members(archive: tarfile.TarFile, limits: Limits) -> Iterator[Member]:
    for seen, entry in enumerate(archive):
        if seen > limits.files * _ENTRIES_PER_FILE:
            raise TooLarge("the archive has more folders than any real one")
        archive.members.clear()  # type: ignore[attr-defined]  # it keeps every header it has read
        if entry.isdir():
            continue
        if not entry.isreg() or entry.issparse():
            raise InvalidInput(f"{entry.name[:200]!r} in the archive is no plain file; links are not taken")
        content = archive.extractfile(entry)
        if content is None:
            raise InvalidInput(f"{entry.name[:200]!r} in the archive has no content")
        with content:
            yield Member(entry.name, content)


def _gunzipped(archive: Path, limits: Limits) -> Path:
    """Return the tar of a .tar.gz, as a separate file: tarfile seeks back and forth, gzip cannot."""
    plain = archive.with_name("plain.tar")
    with gzip.open(archive) as content:
        _write(content, plain, limits.most_bytes + limits.files * _PER_MEMBER_BYTES, limits)
    return plain


def _write(content: Readable, path: Path, most: int, limits: Limits) -> tuple[str, int]:
    """Copy at most `most` bytes and return their sha256 in hex and their number."""
    digest = hashlib.sha256()
    size = 0
    with path.open("xb") as file:
        while piece := content.read(_CHUNK_BYTES):
            size += len(piece)
            if size > most:
                raise limits.too_large()
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest(), size


def _checked(name: str, written: Mapping[str, str], what: str) -> str:
    """Return the name of a member as a path below the target."""
    parts = name.removeprefix("./").split("/")
    if (
        any(part in ("", ".", "..") for part in parts)
        or "\\" in name
        or not name.isprintable()
        or max(len(os.fsencode(part)) for part in parts) > _MAX_NAME_BYTES
    ):
        raise InvalidInput(f"{name[:200]!r} in the {what} is not a path below its top; pack the folder's own files")
    if len(parts) > _MAX_DEPTH:
        raise InvalidInput(f"{name[:200]!r} in the {what} is more than {_MAX_DEPTH} folders deep")
    path = "/".join(parts)
    parents = {"/".join(parts[:depth]) for depth in range(1, len(parts))}
    if path in written or parents & written.keys() or any(known.startswith(f"{path}/") for known in written):
        raise InvalidInput(f"{name[:200]!r} is twice in the {what}")
    return path


def _without_wrapping(target: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Remove the single folder around everything, as in an archive of `digits/1/model.onnx`."""
    top = _wrapping(files)
    if not top:
        return dict(files)
    wrapping = target / top
    aside = target.with_name(f"{target.name}-wrapped")
    wrapping.rename(aside)
    target.rmdir()
    aside.rename(target)
    return {name.removeprefix(f"{top}/"): digest for name, digest in files.items()}


def _wrapping(names: Collection[str]) -> str:
    """Return the single folder around everything that is no version's; empty without one."""
    tops = {name.split("/")[0] for name in names}
    (top,) = tops if len(tops) == 1 else ("",)
    return "" if top.isdecimal() or top in names else top


class _Bounded:
    """A file of which no single read can fill the memory, whatever length a header promises."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        if size > _MAX_HEADER_BYTES:
            raise InvalidInput("the archive has a header that is larger than any real one")
        piece = self._file.read(_MAX_HEADER_BYTES + 1 if size is None or size < 0 else size)
        if len(piece) > _MAX_HEADER_BYTES:
            raise InvalidInput("the archive has a directory that is larger than any real one")
        return piece

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
