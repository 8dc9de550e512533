"""Disk-full detection: from errors of file writes, SQLite and PostgreSQL."""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common.errors import NoRoom

_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
_SQLITE_PRIMARY = 0xFF
_SQLITE_UNSURE = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN})
"""SQLite's messages for a full disk too, where it cannot extend the files beside its database."""
_POSTGRES_DISK_FULL = "53100"
_FEW_BYTES = 64 << 10


def is_no_room(error: BaseException) -> bool:
    """Return whether the system refused a write because the disk, or the user's quota, is full."""
    return isinstance(error, OSError) and error.errno in _ERRNOS


def refused(path: str | Path, home: Path) -> NoRoom:
    """Return the error that names `path`, a file or folder, relative to `home`, or by its last name."""
    place = Path(path)
    name = str(Path("FAIRLEAD_HOME", place.relative_to(home))) if place.is_relative_to(home) else place.name
    return NoRoom(
        f"the disk is full: {name} cannot be written; nothing was changed and what serves goes on; "
        "make room there and try again"
    )


def no_room(error: BaseException, *, home: Path, database: str) -> NoRoom | None:
    """Return the error to respond with where a full disk caused `error`; None otherwise.

    Args:
        home: FAIRLEAD_HOME.
        database: the file of an SQLite database, or the name of another.
    """
    for each in _behind(error):
        if isinstance(each, NoRoom):
            return each
        if isinstance(each, OSError) and each.errno in _ERRNOS:
            return refused(str(each.filename or home), home)
        if isinstance(each, sqlite3.Error) and _is_full(each, Path(database)):
            return refused(database, home)
        if getattr(each, "sqlstate", None) == _POSTGRES_DISK_FULL:
            return NoRoom("the database cannot be written: the disk of its server is full; make room there")
    return None


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file to an error of the block: that of a write names none, and that of a rename another."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _behind(error: BaseException) -> Iterator[BaseException]:
    each: BaseException | None = error
    while each is not None:
        yield each
        each = each.__cause__ or each.__context__


def _is_full(error: sqlite3.Error, database: Path) -> bool:
    code = getattr(error, "sqlite_errorcode", 0) & _SQLITE_PRIMARY
    return code == sqlite3.SQLITE_FULL or (code in _SQLITE_UNSURE and _free_bytes(database.parent) < _FEW_BYTES)


def _free_bytes(folder: Path) -> int:
    try:
        found = os.statvfs(folder)
    except OSError:
        return _FEW_BYTES
    return found.f_bavail * found.f_frsize
