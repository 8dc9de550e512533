"""The database of a test process: a copy of one template with all tables, since migrations take seconds.

On PostgreSQL the template is a database of the server, made under a lock by the first process that wants a copy; on
SQLite it is a file (`tests/servers/template.py`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.test import TransactionTestCase

from tests.servers.template import copy_sqlite, template_key

_LOCK = 0x0FA17
_COPY = f"test_fairlead_{os.getpid()}"
_MADE_BY_DJANGO = {"django_content_type", "auth_permission"}


@contextmanager
def own_database() -> Iterator[None]:
    """Let the default connection use a copy of the template, which is gone afterwards."""
    name = settings.DATABASES["default"]["NAME"]
    connection.close()
    _use(_copied_on_postgres() if connection.vendor == "postgresql" else _copied_file())
    TransactionTestCase._fixture_teardown = lambda _test: empty_tables()
    yield
    connection.close()
    if connection.vendor == "postgresql":
        _on_server(f'DROP DATABASE "{_COPY}" WITH (FORCE)')
    _use(name)


def empty_tables() -> None:
    """Delete the rows that a test with transactions left, where Django's flush takes ten times as long on PostgreSQL.

    A flush truncates every table, and makes content types and permissions again, which no test changes.
    """
    tables = sorted(set(connection.introspection.django_table_names(only_existing=True)) - _MADE_BY_DJANGO)
    quoted = [connection.ops.quote_name(table) for table in tables]
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'EXISTS(SELECT 1 FROM {table})' for table in quoted)}")
        for table, has_rows in zip(quoted, cursor.fetchone(), strict=True):
            if has_rows:  # in any order: foreign keys are checked at the end of the transaction
                cursor.execute(f"DELETE FROM {table}")


def _copied_on_postgres() -> str:
    template = f"fairlead_template_{template_key()}"
    with connection._nodb_cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])  # until the cursor's connection ends
        cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [template])
        if cursor.fetchone() is None:
            cursor.execute(f'DROP DATABASE IF EXISTS "{template}_unfinished"')
            cursor.execute(f'CREATE DATABASE "{template}_unfinished"')
            _migrate(f"{template}_unfinished")
            cursor.execute(f'ALTER DATABASE "{template}_unfinished" RENAME TO "{template}"')
    _on_server(f'CREATE DATABASE "{_COPY}" TEMPLATE "{template}"')
    return _COPY


def _copied_file() -> str:
    copy = str(settings.DATABASES["default"]["TEST"]["NAME"])
    copy_sqlite(Path(copy))
    return copy


def _migrate(name: str) -> None:
    _use(name)
    call_command("migrate", verbosity=0, interactive=False, run_syncdb=True)
    connection.close()


def _use(name: str) -> None:
    settings.DATABASES["default"]["NAME"] = connection.settings_dict["NAME"] = name


def _on_server(statement: str) -> None:
    with connection._nodb_cursor() as cursor:
        cursor.execute(statement)
