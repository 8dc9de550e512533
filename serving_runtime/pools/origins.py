"""Origins of a pool's artifacts: local folders and files, http(s) URLs, buckets, as sources of a fetch.

Local folders may hold files of other teams: links, which could lead elsewhere, are refused.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from serving_runtime.artifacts.remotes import Opened, Remote
from serving_runtime.artifacts.web import WebFile
from serving_runtime.common.errors import ModelError

_CHUNK_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Registry:
    """The control plane's registry, whose addresses get the token.

    Attributes:
        url: prefix of its addresses; empty for none.
    """

    url: str = ""
    token_file: Path | None = None
    authority: Path | None = None

    def owns(self, origin: str) -> bool:
        return bool(self.url) and origin.startswith(f"{self.url.rstrip('/')}/")


@dataclass(frozen=True, slots=True)
class LocalFile:
    """One file of this machine; `path` is its path in the artifact, empty for the whole artifact."""

    file: Path
    path: str = ""

    def __str__(self) -> str:
        return str(self.file)

    @contextmanager
    def open(self, first: int) -> Iterator[Opened]:
        """Open it at a byte offset; raises ModelError for anything else than a plain file."""
        try:
            handle = os.open(self.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            raise ModelError(f"{self.file} cannot be read: {error.strerror}") from error
        with os.fdopen(handle, "rb") as content:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                raise ModelError(f"{self.file} is no plain file; an artifact has only files and folders")
            first = first if first <= found.st_size else 0
            content.seek(first)
            pieces = iter(lambda: content.read(_CHUNK_BYTES), b"")
            yield Opened(first, found.st_size, self.file.name, pieces)


def remotes(origin: str, registry: Registry = Registry()) -> Sequence[Remote]:
    """Return the files at an origin.

    Raises:
        ModelError: it has another form, does not exist, or holds links.
        InterruptedTransferError: a bucket that cannot be listed now.
    """
    scheme = urlsplit(origin).scheme
    if scheme in ("http", "https"):
        if registry.owns(origin):
            return [WebFile(origin, registry.token_file, registry.authority)]
        return [WebFile(origin)]
    if scheme in ("s3", "gs"):
        from serving_runtime.artifacts.buckets import objects_at  # noqa: PLC0415 - a library that is an extra

        return objects_at(origin)
    path = Path(origin)
    if scheme or not path.is_absolute():
        raise ModelError(f"origin {origin[:200]!r} is no absolute path, http(s)://, s3:// or gs:// URI")
    return _local(path)


def _local(path: Path) -> Sequence[Remote]:
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise ModelError(f"there is no model at {path}: {error.strerror}; push the model version again") from error
    if stat.S_ISREG(mode):
        return [LocalFile(path)]
    if not stat.S_ISDIR(mode):
        raise ModelError(f"{path} is neither a folder nor a plain file")
    found: list[Remote] = []
    for above, folders, names in os.walk(path):
        for entry in (Path(above, name) for name in (*folders, *names)):
            kind = entry.lstat().st_mode
            if not (stat.S_ISDIR(kind) or stat.S_ISREG(kind)):
                raise ModelError(f"{entry} is no plain file; an artifact has only files and folders")
            if stat.S_ISREG(kind):
                found.append(LocalFile(entry, entry.relative_to(path).as_posix()))
    if not found:
        raise ModelError(f"the folder {path} is empty; push the model version again")
    return found
