"""Folders of programs: which may be run, and the digest of their content. Called by the registry's side and the agent.

The digest is sha256 over the sorted entries of the folder: each one's kind (file, executable file, link, folder), path,
and content or target. Times, owners and other permissions do not count.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from common.errors import InvalidInput
from common.programs import SETTING, check_working_dir, record_of

MOST_FILES = 10_000
MOST_BYTES = 1 << 30
_CHUNK_BYTES = 1 << 20
_DATA = "keep data elsewhere, such as in a model's files"


def recorded(working_dir: str, allowed: Sequence[Path], *, home: Path, field: str = "workingDir") -> str:
    """Return the record of a program, `NAME@sha256:…`, from what its folder holds now; reads every byte.

    Args:
        allowed: folders of which each folder is a program; empty runs none.
        home: the platform's own folder, which no program gets to see.
        field: its name in errors.

    Raises:
        InvalidInput: the folder may not be run, or has what no program may have.
    """
    folder = _allowed(working_dir, allowed, home=home, field=field)
    return record_of(working_dir, digest_of_program(folder, field=field))


def check_unchanged(
    working_dir: str, record: str, allowed: Sequence[Path], *, home: Path, revision: str, field: str = "workingDir"
) -> None:
    """Raise InvalidInput where a program may not be run any more, or its folder no longer has the recorded content."""
    if recorded(working_dir, allowed, home=home, field=field) != record:
        raise InvalidInput(
            f"the program's folder {working_dir} has other content than when revision {revision} was applied; put each "
            "release of a program into a folder of its own, and apply the service's file with it",
            field=field,
        )


def digest_of_program(folder: Path, *, field: str = "workingDir") -> str:
    """Return the digest of a program's folder; raises InvalidInput for what no program may have."""
    left_bytes, count, digest = MOST_BYTES, 0, hashlib.sha256()
    try:
        for path, mode in _entries(folder):
            count += 1
            if count > MOST_FILES:
                raise InvalidInput(f"{field}: {folder} has more than {MOST_FILES:,} entries; {_DATA}", field=field)
            kind, content, size = _content(path, mode, folder, left_bytes, field=field)
            left_bytes -= size
            for part in (kind, os.fsencode(path.relative_to(folder)), content):
                digest.update(len(part).to_bytes(8, "big"))
                digest.update(part)
    except OSError as error:
        raise InvalidInput(
            f"{field}: {folder} cannot be read ({error.strerror}: {error.filename}); let the platform's user read it",
            field=field,
        ) from error
    if not count:
        raise InvalidInput(f"{field}: {folder} is empty; put the program into it", field=field)
    return f"sha256:{digest.hexdigest()}"


def _allowed(working_dir: str, allowed: Sequence[Path], *, home: Path, field: str) -> Path:
    """Return the folder of a program; raises InvalidInput where it may not be run."""
    check_working_dir(working_dir, field=field)
    if not allowed:
        raise InvalidInput(
            f"{field} is {working_dir!r}, and this installation runs no programs; have its operator name the folder "
            f"that holds the programs' folders in {SETTING}, and start the platform again",
            field=field,
        )
    folder = Path(working_dir)
    if not any(folder.parent == each for each in allowed):
        raise InvalidInput(
            f"{field} is {working_dir!r}, and this installation runs the programs of folders directly in "
            f"{', '.join(map(str, allowed))} ({SETTING}); put the program's folder there",
            field=field,
        )
    if folder.is_symlink() or not folder.is_dir():
        what = "is a link" if folder.is_symlink() else "is no folder on this machine"
        raise InvalidInput(f"{field} is {working_dir!r}, which {what}; name the program's own folder", field=field)
    its, own = folder.resolve(), home.resolve()
    if its.is_relative_to(own) or own.is_relative_to(its):
        raise InvalidInput(
            f"{field} is {working_dir!r}, which holds files of the platform itself; put programs elsewhere", field=field
        )
    return folder


def _entries(folder: Path) -> Iterator[tuple[Path, int]]:
    """Yield path and mode of everything below the folder, in one order everywhere; follows no links."""
    stack = [folder]
    while stack:
        path = stack.pop()
        mode = path.lstat().st_mode
        if path != folder:
            yield path, mode
        if stat.S_ISDIR(mode):
            stack += sorted(path.iterdir(), reverse=True)


def _content(path: Path, mode: int, folder: Path, most_bytes: int, *, field: str) -> tuple[bytes, bytes, int]:
    """Return kind, content as it counts, and size in bytes of one entry."""
    if stat.S_ISDIR(mode):
        return b"folder", b"", 0
    if stat.S_ISLNK(mode):
        if not path.resolve().is_relative_to(folder.resolve()):
            raise InvalidInput(
                f"{field}: {path} is a link out of the program's folder; copy what it means", field=field
            )
        return b"link", os.fsencode(path.readlink()), 0
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{field}: {path} is no file, folder or link; remove it", field=field)
    digest, size = hashlib.sha256(), 0
    with open(path, "rb", opener=_opened) as file:
        while chunk := file.read(_CHUNK_BYTES):
            size += len(chunk)
            if size > most_bytes:
                raise InvalidInput(f"{field}: {folder} has more than {MOST_BYTES >> 30} GiB; {_DATA}", field=field)
            digest.update(chunk)
    return (b"executable" if mode & stat.S_IXUSR else b"file"), digest.digest(), size


def _opened(path: str, flags: int) -> int:
    """Open a file that may be replaced meanwhile: by a link, or by a pipe without a writer."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
