"""A new home has the tables and rows that all migrations make, though none of them runs."""

import os
import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.servers.template import PLATFORM, copy_sqlite

TIMEOUT_S = 120
MOMENTS = {"applied", "created_at"}
"""Columns of when a row was made."""
MAKE = """
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from control_plane.database.new_database import is_new, make_tables
executor = MigrationExecutor(connection)
assert is_new()
make_tables(migration for migration, _ in executor.migration_plan(executor.loader.graph.leaf_nodes()))
assert not is_new()
"""


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Return a database that all migrations made, one after the other."""
    file = tmp_path_factory.mktemp("migrated") / "fairlead.sqlite3"
    copy_sqlite(file)
    with closing(sqlite3.connect(file)) as database:
        yield database


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """Return a database that was made at once."""
    home = tmp_path_factory.mktemp("made")
    manage(home, "shell", "--no-imports", "--command", MAKE)
    with closing(sqlite3.connect(home / "fairlead.sqlite3")) as database:
        yield database


def manage(home: Path, *arguments: str) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))}
    subprocess.run(
        [sys.executable, str(PLATFORM.parent / "manage.py"), *arguments],
        env=kept | {"FAIRLEAD_SECRET_KEY": "only-for-a-test-" + "x" * 40, "FAIRLEAD_HOME": str(home)},
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=TIMEOUT_S,
    )


def tables(database: sqlite3.Connection) -> list[str]:
    named = database.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    return sorted(name for (name,) in named)


def columns(database: sqlite3.Connection, table: str) -> dict[str, tuple[Any, ...]]:
    """Return type, NOT NULL, default and place in the primary key of each column."""
    return {row[1]: row[2:] for row in database.execute(f'PRAGMA table_info("{table}")')}


def conditions(database: sqlite3.Connection, table: str) -> list[str]:
    """Return the definitions in the table's SQL, in the alphabet's order: a later migration appends its columns."""
    (sql,) = database.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", [table]).fetchone()
    inside = sql[sql.index("(") + 1 : sql.rindex(")")]
    return sorted(part.strip() for part in re.split(r",\s*(?![^(]*\))", inside))


def indexes(database: sqlite3.Connection) -> dict[str, str]:
    rows = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL")
    return dict(rows.fetchall())


def rows(database: sqlite3.Connection, table: str) -> list[tuple[str, ...]]:
    """Return the rows without their numbers and moments, in order."""
    shown = [name for name in columns(database, table) if name not in MOMENTS | {"id"}]
    names = ", ".join(f'"{name}"' for name in sorted(shown))
    return sorted(tuple(map(str, row)) for row in database.execute(f'SELECT {names} FROM "{table}"'))


def test_it_has_the_tables_and_columns_of_the_migrations(
    made: sqlite3.Connection, migrated: sqlite3.Connection
) -> None:
    assert tables(made) == tables(migrated)
    for table in tables(made):
        assert columns(made, table) == columns(migrated, table), table
        assert conditions(made, table) == conditions(migrated, table), table


def test_it_has_the_indexes_of_the_migrations(made: sqlite3.Connection, migrated: sqlite3.Connection) -> None:
    assert indexes(made) == indexes(migrated)


def test_it_has_the_rows_of_the_migrations(made: sqlite3.Connection, migrated: sqlite3.Connection) -> None:
    for table in set(tables(made)) - {"auth_permission"}:
        assert rows(made, table) == rows(migrated, table), table


def test_it_has_the_permissions_of_the_migrations(made: sqlite3.Connection, migrated: sqlite3.Connection) -> None:
    permissions = """
    SELECT app_label, model, codename, name FROM auth_permission AS permission
    JOIN django_content_type AS type ON type.id = permission.content_type_id ORDER BY app_label, model, codename
    """
    assert made.execute(permissions).fetchall() == migrated.execute(permissions).fetchall() != []


@pytest.mark.parametrize("before", [(), ("migrate", "accounts", "0001")], ids=["new", "of an earlier release"])
def test_a_home_is_prepared_whether_it_has_tables_or_not(
    migrated: sqlite3.Connection, tmp_path: Path, before: tuple[str, ...]
) -> None:
    if before:
        manage(tmp_path, *before, "--verbosity", "0")
    manage(tmp_path, "prepare_home", "--token", str(tmp_path / "token"))
    with closing(sqlite3.connect(tmp_path / "fairlead.sqlite3")) as database:
        assert rows(database, "django_migrations") == rows(migrated, "django_migrations")
        assert tables(database) == tables(migrated)
        assert database.execute("SELECT count(*) FROM accounts_apitoken").fetchone() == (1,)
