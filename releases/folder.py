"""The folder of a release as somebody else has filled it: hostile until it is verified.

Only plain files with plain names are read, never through a link, never without a limit.
"""

import hashlib
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from releases.errors import ReleaseError
from releases.sums import MOST_FILES, is_file_name

LARGEST_TEXT_BYTES = 1 << 20
LONGEST_LIST = 2000
_BLOCK_BYTES = 1 << 20


def names(folder: Path) -> list[str]:
    """Return the names of all files; raises ReleaseError where an entry is something else, or too many are there."""
    found: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                found.append(_plain(entry))
                if len(found) > MOST_FILES + 2:
                    raise ReleaseError(f"{folder} has more than {MOST_FILES} files: it is no release")
    except OSError as error:
        raise ReleaseError(f"{folder} cannot be read: {error.strerror}") from error
    return sorted(found)


def _plain(entry: "os.DirEntry[str]") -> str:
    if not is_file_name(entry.name):
        raise ReleaseError(f"the release has an entry {entry.name[:80]!r}, which is no plain file name: do not use it")
    if not entry.is_file(follow_symlinks=False):
        raise ReleaseError(f"{entry.name} in the release is a link, folder or device, not a file: do not use it")
    return entry.name


@contextmanager
def opened(folder: Path, name: str) -> Iterator[BinaryIO]:
    """Open a plain file, never what a link leads to; raises ReleaseError."""
    try:
        number = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ReleaseError(f"{name} in the release cannot be read: {error.strerror}") from error
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise ReleaseError(f"{name} in the release is no file: do not use it")
        yield file


def sha256(folder: Path, name: str) -> str:
    """Return the SHA-256 of a file, in hex."""
    found = hashlib.sha256()
    with opened(folder, name) as file:
        while block := file.read(_BLOCK_BYTES):
            found.update(block)
    return found.hexdigest()


def content(folder: Path, name: str) -> bytes:
    """Return the content of a small file; raises ReleaseError beyond a mebibyte."""
    with opened(folder, name) as file:
        read = file.read(LARGEST_TEXT_BYTES + 1)
    if len(read) > LARGEST_TEXT_BYTES:
        raise ReleaseError(f"{name} is larger than {LARGEST_TEXT_BYTES} bytes: it is none of a release")
    return read


def document(text: bytes, name: str) -> Any:
    """Return a JSON document; raises ReleaseError where it is none, repeats a key, or has an endless list."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
        _check_lists(found)
    except (ValueError, RecursionError) as error:
        raise ReleaseError(f"{name} is no JSON of a release: fetch the release again") from error
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _no_number(word: str) -> None:
    raise ValueError(word)


def _check_lists(value: Any) -> None:
    """Raise ValueError for a list whose comparison, item by item, would take minutes."""
    if isinstance(value, list) and len(value) > LONGEST_LIST:
        raise ValueError("a list is too long")
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _check_lists(each)
