"""Unpacks a download into an artifact's files: one model file, or an archive's members. Computes their digest.

An archive is untrusted: only plain files are extracted, and none outside of the folder; the artifact's digest then
verifies their content.
"""

import hashlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from serving_runtime.common.errors import ModelError
from serving_runtime.shared.archive_limits import most_unpacked, refusal
from serving_runtime.shared.model_files import (
    ACCEPTED,
    HEAD_BYTES,
    may_be_model,
    stored_name,
    stored_name_by_content,
)

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
_CHUNK_BYTES = 1 << 20
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError)


def digest_of(files: Mapping[str, str]) -> str:
    """Return the digest of an artifact: sha256 over the sorted lines `path NUL sha256 LF` of its files."""
    lines = "".join(f"{path}\0{sha256}\n" for path, sha256 in sorted(files.items()))
    return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()


def digest_of_folder(folder: Path) -> str:
    """Return the digest of the files in `folder`; reads every byte."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return digest_of({path.relative_to(folder).as_posix(): _sha256(path) for path in paths})


def is_known(filename: str) -> bool:
    """Return whether a file of that name can be a whole artifact."""
    return may_be_model(filename) or filename.lower().endswith(ARCHIVES)


def unpack(file: Path, filename: str, sha256: str, folder: Path) -> dict[str, str]:
    """Turn a received file into the artifact's `folder`, and remove the file. Returns each path's sha256 in hex.

    Raises:
        ModelError: its name has no known type, or the archive is invalid or unpacks to far more than its size.
    """
    folder.mkdir(parents=True)
    if name := stored_name(filename) or _name_by_content(file, filename):
        file.replace(folder / name)
        return {name: sha256}
    if not filename.lower().endswith(ARCHIVES):
        raise ModelError(f"{filename!r} is neither a model ({ACCEPTED}) nor an archive ({', '.join(ARCHIVES)})")
    try:
        members = _zip(file) if filename.lower().endswith(".zip") else _tar(file)
        files = _write_all(members, folder, file.stat().st_size, filename)
    except _BROKEN as error:
        raise ModelError(f"the archive {filename} cannot be unpacked: {error or type(error).__name__}") from error
    file.unlink()
    return without_wrapping(folder, files)


def _name_by_content(file: Path, filename: str) -> str:
    if not may_be_model(filename):
        return ""
    with file.open("rb") as content:
        return stored_name_by_content(content.read(HEAD_BYTES))


def _tar(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(file, "r:*") as archive:
        for member in archive:
            if member.isdir():
                continue
            content = archive.extractfile(member) if member.isreg() else None
            if content is None:
                raise ModelError(f"{member.name[:200]!r} in the archive is no plain file")
            yield member.name, content


def _zip(file: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            if not entry.is_dir():
                with archive.open(entry) as content:
                    yield entry.filename, content


def _write_all(
    members: Iterator[tuple[str, IO[bytes]]], folder: Path, archive_bytes: int, filename: str
) -> dict[str, str]:
    files, left = {}, most_unpacked(archive_bytes)
    for name, content in members:
        files[name], size_bytes = _write(content, folder, name, left)
        left -= size_bytes
        if left < 0:
            raise ModelError(f"the archive {filename} {refusal(archive_bytes)}")
    return files


def _write(content: IO[bytes], folder: Path, name: str, most: int) -> tuple[str, int]:
    """Write at most one piece more than `most` bytes; return their sha256 in hex and their number."""
    parts = name.removeprefix("./").split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in name or "\0" in name:
        raise ModelError(f"{name[:200]!r} in the archive is not a path below its top")
    path = folder.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, size_bytes = hashlib.sha256(), 0
    with path.open("xb") as written:
        while size_bytes <= most and (piece := content.read(_CHUNK_BYTES)):
            digest.update(piece)
            written.write(piece)
            size_bytes += len(piece)
    return digest.hexdigest(), size_bytes


def without_wrapping(folder: Path, files: Mapping[str, str]) -> dict[str, str]:
    """Strip the single top-level folder, as the registry does."""
    named = {name.removeprefix("./"): sha256 for name, sha256 in files.items()}
    tops = {name.split("/")[0] for name in named}
    (top,) = tops if len(tops) == 1 else ("",)
    if not top or top.isdecimal() or top in named:
        return named
    aside = folder.with_name(f"{folder.name}-wrapped")
    (folder / top).rename(aside)
    folder.rmdir()
    aside.rename(folder)
    return {name.removeprefix(f"{top}/"): sha256 for name, sha256 in named.items()}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
