"""What counts as a full disk, and how the refusal names the file."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import OperationalError

from common.disk_full import naming, no_room
from tests._support.small_disk import filled, small_disk

HOME = Path("/srv/fairlead")
DATABASE = "/srv/fairlead/fairlead.sqlite3"


def full(filename: str | None, number: int = errno.ENOSPC) -> OSError:
    return OSError(number, os.strerror(number), filename)


def caught(act: Callable[[], object]) -> BaseException:
    try:
        act()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def from_database(folder: Path) -> BaseException:
    """Return what Django raises where SQLite has no room."""

    def write() -> None:
        database = sqlite3.connect(folder / "x.sqlite3")
        database.execute("PRAGMA max_page_count = 2")
        try:
            database.execute("CREATE TABLE one (x)")
            database.execute("INSERT INTO one VALUES (zeroblob(99999))")
        except sqlite3.Error as error:
            raise OperationalError(str(error)) from error
        finally:
            database.close()

    return caught(write)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        pytest.param(
            full("/srv/fairlead/cluster/desired/a.b.json"),
            "FAIRLEAD_HOME/cluster/desired/a.b.json",
            id="a file of the home",
        ),
        pytest.param(full("/var/tmp/secret/x", errno.EDQUOT), "x", id="a file elsewhere, beyond a quota"),
        pytest.param(full(None), "FAIRLEAD_HOME", id="a file that is not known"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(error: OSError, name: str) -> None:
    found = no_room(error, home=HOME, database=DATABASE)
    assert found is not None
    assert found.message.startswith(f"the disk is full: {name} cannot be written; ")


def test_a_full_database_is_found_behind_the_error_of_django(tmp_path: Path) -> None:
    found = no_room(from_database(tmp_path), home=HOME, database=DATABASE)
    assert found is not None
    assert found.message.startswith("the disk is full: FAIRLEAD_HOME/fairlead.sqlite3 cannot be written; ")


def test_a_database_that_cannot_be_opened_on_a_full_disk_counts_too(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64) as disk:
        with filled(disk):
            error = caught(lambda: sqlite3.connect(disk / "x.sqlite3").execute("CREATE TABLE x (i)"))
            assert no_room(error, home=disk, database=str(disk / "x.sqlite3")) is not None
        other = caught(lambda: sqlite3.connect(tmp_path / "no" / "folder").execute("SELECT 1"))
        assert no_room(other, home=tmp_path, database=str(tmp_path / "x.sqlite3")) is None


def test_the_disk_of_a_postgresql_server() -> None:
    class DiskFull(Exception):  # noqa: N818 - as psycopg calls it
        sqlstate = "53100"

    error = OperationalError("could not extend file")
    error.__cause__ = DiskFull()
    found = no_room(error, home=HOME, database="fairlead")
    assert found is not None
    assert "the disk of its server is full" in found.message


@pytest.mark.parametrize("error", [full("/x", errno.EACCES), OperationalError("database is locked"), LookupError("x")])
def test_another_error_is_none(error: Exception) -> None:
    assert no_room(error, home=HOME, database=DATABASE) is None


def test_a_write_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="/x") as found, naming(tmp_path / "x"):
        raise full(None)
    assert found.value.filename == str(tmp_path / "x")
