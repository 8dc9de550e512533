"""Local source: files and folders of this machine below a root that an operator allows.

Links may lead about within the root, never out of it. After they are resolved the path is walked from the root down,
part by part and following no link, so that replacing a part by a link in the meantime gains nothing.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from common.errors import InvalidInput, NotFound, TooLarge, Unavailable
from common.uris import SETTING, Address
from integrations.sources.content import Content, SourceFile

_PLAIN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def files_at(address: Address, roots: Sequence[Address], *, max_files: int) -> list[SourceFile]:
    """Return the file at the address, or the files of the folder there.

    Raises:
        NotFound: nothing is there.
        InvalidInput: it leads out of the root, or something there is neither file nor folder.
        TooLarge: the folder has more files than allowed.
    """
    try:
        root, place = _within(address, roots)
        if not place.is_dir():
            return [_file(root, place, "")]
        return list(_below(root, place, max_files))
    except FileNotFoundError:
        raise NotFound(f"there is nothing at {address.shown} on the machine of the worker") from None
    except OSError as error:
        raise InvalidInput(f"{address.shown} cannot be read: {error.strerror}") from error


def _within(address: Address, roots: Sequence[Address]) -> tuple[Path, Path]:
    """Return the root and the place below it, both without links."""
    place = Path(address.path).resolve(strict=True)
    for prefix in roots:
        if prefix.scheme != "file" or address.parts[: len(prefix.parts)] != prefix.parts:
            continue
        root = Path(prefix.path).resolve(strict=True)
        if place == root or root in place.parents:
            return (root if root.is_dir() else root.parent), place
    raise InvalidInput(f"{address.shown} is a link that leads out of what {SETTING} allows; name the files themselves")


def _below(root: Path, folder: Path, max_files: int) -> Iterator[SourceFile]:
    count = 0
    for parent, folders, names in os.walk(folder, followlinks=False, onerror=_raise):
        folders.sort()
        for name in sorted([*names, *(each for each in folders if (Path(parent) / each).is_symlink())]):
            count += 1
            if count > max_files:
                raise TooLarge(f"the folder has more than the {max_files} files that are allowed")
            place = Path(parent) / name
            if place.is_symlink():
                raise InvalidInput(f"{place} is a link; put the file itself into the folder")
            yield _file(root, place, place.relative_to(folder).as_posix())


def _file(root: Path, place: Path, path: str) -> SourceFile:
    return SourceFile(path, place.stat().st_size, lambda: _opened(root, place))


@contextmanager
def _opened(root: Path, place: Path) -> Iterator[Content]:
    try:
        handle = _walk_to(root, place)
    except OSError as error:
        raise InvalidInput(f"{place} cannot be opened as a plain file: {error.strerror}") from error
    with os.fdopen(handle, "rb", buffering=0) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"{place} is no plain file")
        yield _Open(file, found.st_size, found.st_mtime_ns, place)


def _walk_to(root: Path, place: Path) -> int:
    """Open the file at `place`, from `root` without following any link."""
    parts = place.relative_to(root).parts
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts[:-1]:
            deeper = os.open(part, _PLAIN | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = deeper
        return os.open(parts[-1], _PLAIN, dir_fd=handle)
    finally:
        os.close(handle)


@dataclass
class _Open:
    file: BinaryIO
    size_bytes: int | None
    changed_ns: int
    place: Path

    def read(self, size: int = -1, /) -> bytes:
        piece = self.file.read(size)
        if not piece and os.fstat(self.file.fileno()).st_mtime_ns != self.changed_ns:
            raise Unavailable(f"{self.place} was changed while it was read")
        return piece


def _raise(error: OSError) -> None:
    raise error
