"""Content-addressed artifact store in a local folder: `<folder>/<digest hex>/model.onnx`. Called by the registry.

An artifact is one model file, or one model's folder in Triton's layout, which is pushed as an archive.

A file is written under `<folder>/.incoming/` while its bytes come in and moved into place by one rename, so that a
reader sees a whole artifact or none. The digest of an artifact is sha256 over the sorted lines `path NUL sha256 LF` of
its files; the same files always have the same digest, under any uploaded name.
"""

import contextlib
import hashlib
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self
from urllib.parse import unquote, urlsplit

from common.disk_full import naming
from common.errors import Conflict, InvalidInput, NotFound, TooLarge
from integrations.artifacts.archives import SUFFIXES, Limits, Member, lay_down, unpack
from serving_runtime.shared.model_files import (
    ACCEPTED,
    HEAD_BYTES,
    WITHOUT_CODE,
    is_pickle,
    may_be_model,
    stored_name,
    stored_name_by_content,
)

_INCOMING = ".incoming"
_DIGEST = re.compile("sha256:[0-9a-f]{64}")
_ABANDONED_AFTER_S = 24 * 3600.0


@dataclass(frozen=True, slots=True)
class StoredArtifact:
    """What was stored: `digest` is `sha256:<64 hex digits>`, `files` maps each path in it to its sha256 in hex."""

    digest: str
    uri: str
    size_bytes: int
    files: Mapping[str, str]


def digest_of(files: Mapping[str, str]) -> str:
    """Return the artifact digest for `files` (path to sha256 in hex), independent of their order."""
    lines = "".join(f"{path}\0{sha256}\n" for path, sha256 in sorted(files.items()))
    return "sha256:" + hashlib.sha256(lines.encode()).hexdigest()


def digest_of_folder(folder: Path) -> str:
    """Return the digest of the files under `folder`; reads every byte."""
    return digest_of({path.relative_to(folder).as_posix(): _sha256(path) for path in _files(folder)})


def folder_of(uri: str) -> Path:
    """Return the local folder of a `file:///…` URI.

    Raises:
        InvalidInput: another scheme, or a path that is not absolute.
    """
    parts = urlsplit(uri)
    folder = Path(unquote(parts.path))
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not folder.is_absolute():
        raise InvalidInput(f"artifact {uri!r} is not a local folder; write it as file:///absolute/path")
    return folder


class ArtifactStore:
    """A folder of artifacts, each at most `max_bytes` large and of at most `max_files` files."""

    def __init__(self, folder: Path, *, max_bytes: int, max_files: int = 1000) -> None:
        self.folder = folder.absolute()
        self.max_bytes = max_bytes
        self.max_files = max_files

    def begin(self, filename: str, *, owner: str = "") -> "ArtifactWriter":
        """Return a writer for one model file or one archive; `filename` only sets its format.

        Args:
            owner: names the work, of which only one runs; leftovers of an earlier try are removed first.

        Raises:
            InvalidInput: a path in place of a name, or a format that is not served.
        """
        check_filename(filename)
        self._drop_abandoned()
        archive = _archive_suffix(filename)
        return ArtifactWriter(self, filename, self._working_folder(owner), archive=archive)

    def put_folder(self, members: Iterable[Member], *, owner: str) -> StoredArtifact:
        """Store the files as one model's folder; raises InvalidInput and TooLarge as for an archive."""
        self._drop_abandoned()
        place = self._working_folder(owner)
        try:
            files = lay_down(members, place / "content", Limits(self.max_bytes, self.max_files), "folder")
            return self._keep(place / "content", files)
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def path_of(self, digest: str) -> Path:
        """Return where the artifact with `digest` is or would be.

        Raises:
            InvalidInput: not a digest; only a digest may become part of a path.
        """
        if not _DIGEST.fullmatch(digest):
            raise InvalidInput(
                f"{digest!r} is not an artifact digest; it looks like sha256:<64 hex digits>", field="digest"
            )
        return self.folder / digest.removeprefix("sha256:")

    def get(self, digest: str) -> StoredArtifact:
        """Return the stored artifact, its files read again; raises NotFound."""
        place = self.path_of(digest)
        if not place.is_dir():
            raise NotFound(f"no artifact {digest} in {self.folder}")
        paths = list(_files(place))
        files = {path.relative_to(place).as_posix(): _sha256(path) for path in paths}
        return StoredArtifact(digest, place.as_uri(), sum(path.stat().st_size for path in paths), files)

    def verify(self, digest: str) -> None:
        """Raise NotFound where the artifact is missing and Conflict where its files are not those of `digest`."""
        found = digest_of(self.get(digest).files)
        if found != digest:
            raise Conflict(f"artifact {digest} was changed on disk: its files now have {found}; push the model again")

    def delete(self, digest: str) -> None:
        """Remove the artifact; removing an absent one is no error."""
        place = self.path_of(digest)
        incoming = self._incoming()
        doomed = Path(tempfile.mkdtemp(prefix="deleted-", dir=incoming))
        try:
            place.rename(doomed / place.name)
        except FileNotFoundError:
            pass
        finally:
            shutil.rmtree(doomed)

    def size_of(self, digest: str) -> int:
        """Return how many bytes the artifact's files have; 0 where it is gone."""
        try:
            return sum(file.stat().st_size for file in _files(self.path_of(digest)))
        except FileNotFoundError:  # deleted meanwhile
            return 0

    def stored_before(self, limit: float) -> list[str]:
        """Return the digests of artifacts that were last stored, first or again, before `limit` (Unix seconds)."""
        places = self.folder.iterdir() if self.folder.is_dir() else ()
        return [
            f"sha256:{place.name}"
            for place in places
            if _DIGEST.fullmatch(f"sha256:{place.name}") and place.stat().st_mtime < limit
        ]

    def _keep(self, folder: Path, files: Mapping[str, str]) -> StoredArtifact:
        """Move `folder` to the path of its digest."""
        digest = digest_of(files)
        size_bytes = sum((folder / path).stat().st_size for path in files)
        place = self.path_of(digest)
        for path in files:
            (folder / path).chmod(0o444)  # replicas link to these files: what writes here would change what they serve
        os.utime(folder)
        folder.chmod(0o755)  # mkdtemp's 0700 would keep a runtime under another user out
        try:
            folder.rename(place)
        except OSError:
            if not place.is_dir():
                raise
            os.utime(place)  # stored again just now, which `stored_before` reads
        else:
            _sync_folder(self.folder)
        return StoredArtifact(digest, place.as_uri(), size_bytes, files)

    def _drop_abandoned(self) -> None:
        """Remove leftovers of uploads whose process was killed."""
        for place in self._incoming().iterdir():
            with contextlib.suppress(FileNotFoundError):  # its upload ended meanwhile
                if time.time() - place.stat().st_mtime > _ABANDONED_AFTER_S:
                    shutil.rmtree(place, ignore_errors=True)

    def _working_folder(self, owner: str) -> Path:
        """Return a new folder for files that come in."""
        if owner:
            for left in self._incoming().glob(f"{owner}-*"):
                shutil.rmtree(left, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=f"{owner or 'upload'}-", dir=self._incoming()))

    def _incoming(self) -> Path:
        incoming = self.folder / _INCOMING
        incoming.mkdir(parents=True, exist_ok=True)
        return incoming


class ArtifactWriter:
    """Takes one file's bytes as they come; leaving the `with` block without `commit` leaves nothing behind."""

    def __init__(self, store: ArtifactStore, filename: str, folder: Path, *, archive: str) -> None:
        self._store = store
        self._filename = filename
        self._archive = archive
        self._hash = hashlib.sha256()
        self._folder = folder
        self._path = folder / (f"archive{archive}" if archive else "file")
        self._file: BinaryIO | None = self._path.open("xb")
        self.size_bytes = 0

    @property
    def sha256(self) -> str:
        """Return the sha256 in hex of the bytes written so far."""
        return self._hash.hexdigest()

    def write(self, chunk: bytes) -> None:
        """Add bytes; raises TooLarge, after which the writer is aborted."""
        if self._file is None:
            raise ValueError("the writer is closed")
        self.size_bytes += len(chunk)
        if self.size_bytes > self._store.max_bytes:
            self.abort()
            raise TooLarge(f"the model file has more than the {self._store.max_bytes} bytes that are allowed")
        self._hash.update(chunk)
        with naming(self._store.folder):
            self._file.write(chunk)

    def commit(self) -> StoredArtifact:
        """Put the file, or the archive's files, into the store; the same files again are the existing artifact.

        Raises:
            InvalidInput: nothing was written, the file is no model, or the archive does not hold one model's folder.
            TooLarge: the archive holds more than the store takes.
        """
        if self._file is None:
            raise ValueError("the writer is closed")
        if self.size_bytes == 0:
            self.abort()
            raise InvalidInput("the model file is empty; send the file's bytes as the body")
        with naming(self._store.folder):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        self._file = None
        try:
            return self._store._keep(*self._content())
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _content(self) -> tuple[Path, Mapping[str, str]]:
        """Return the folder that becomes the artifact, and its files."""
        if not self._archive:
            name = self._stored_name()
            self._path.rename(self._folder / name)
            return self._folder, {name: self.sha256}
        folder = self._folder / "content"
        limits = Limits(self._store.max_bytes, self._store.max_files)
        return folder, unpack(self._path, folder, limits)

    def _stored_name(self) -> str:
        """Return the name of the single file in its artifact; raises InvalidInput where its bytes are no model's."""
        with self._path.open("rb") as file:
            head = file.read(HEAD_BYTES)
        if is_pickle("", head):
            raise InvalidInput(f"{self._filename!r} is {WITHOUT_CODE}")
        if name := stored_name(self._filename) or stored_name_by_content(head):
            return name
        raise InvalidInput(
            f"{self._filename!r} is no model by what is in it: neither JSON or UBJSON of XGBoost nor text of LightGBM, "
            "as Booster.save_model writes them; save the model again in one of these forms"
        )

    def abort(self) -> None:
        """Discard the written bytes; after `commit` this does nothing."""
        if self._file is not None:
            with contextlib.suppress(OSError):  # a write that a full disk refused is not needed
                self._file.close()
            self._file = None
            shutil.rmtree(self._folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.abort()


def check_filename(filename: str) -> None:
    """Raise InvalidInput unless a file of that name can be a version; a path in place of a name cannot."""
    if filename in (".", "..") or any(sign in filename for sign in "/\\") or not _is_shown(filename):
        raise InvalidInput(f"{filename!r} is not a file name; give a plain name such as model.onnx", field="filename")
    if is_pickle(filename):
        raise InvalidInput(f"{filename!r} is {WITHOUT_CODE}", field="filename")
    if not is_model_file(filename):
        archives = ", ".join(f"*{known}" for known in SUFFIXES)
        raise InvalidInput(
            f"{filename!r} is not a model file that can be served; accepted are {ACCEPTED}, {archives}",
            field="filename",
        )


def is_model_file(filename: str) -> bool:
    """Return whether a file of that name can be a version: a model file, or an archive of a model's folder."""
    return may_be_model(filename) or bool(_archive_suffix(filename))


def _archive_suffix(filename: str) -> str:
    return next((known for known in SUFFIXES if filename.lower().endswith(known)), "")


def _is_shown(filename: str) -> bool:
    """Return whether a name is non-empty, without characters that break lines, move the cursor or reverse the text."""
    return bool(filename) and filename.isprintable()


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync_folder(folder: Path) -> None:
    """Make renames in `folder` survive a power cut."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
