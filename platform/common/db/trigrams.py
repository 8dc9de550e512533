"""Trigram indexes for substring search, on PostgreSQL by its extension pg_trgm; elsewhere a search scans the table.

A migration creates them, outside of the models' state: SQLite has none, and PostgreSQL only where the extension exists
or may be created (since 13, by users who may create objects in the database). Without it everything works as before.
"""

import logging
from typing import Any

from django.db import DatabaseError, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.operations.base import Operation

logger = logging.getLogger(__name__)
_SCHEMA = """
SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
WHERE extname = 'pg_trgm'
"""


class TrigramIndex(Operation):
    """Creates the index where the database supports it.

    Args:
        name: of the index.
        table: its table, by its name in the database.
        expression: SQL of the text; searches must use the same one, as `UPPER(name)` is `icontains`.
    """

    reversible = True

    def __init__(self, name: str, table: str, expression: str) -> None:
        self.name, self.table, self.expression = name, table, expression

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing: the index is not part of the models' state."""

    def database_forwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:  # noqa: ARG002
        """Create it, or log why it is missing."""
        self.make(schema_editor.connection)

    def database_backwards(self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any) -> None:  # noqa: ARG002
        """Drop it; the extension stays, since others may use it."""
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP INDEX IF EXISTS {self.name}")

    def describe(self) -> str:
        """Return its description in lists of migrations."""
        return f"Index {self.name} for a part of {self.expression} of {self.table}, where PostgreSQL has pg_trgm"

    def make(self, connection: BaseDatabaseWrapper) -> bool:
        """Create the index unless it exists, and return whether it exists now."""
        if connection.vendor != "postgresql":
            return False
        try:
            with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
                cursor.execute("CREATE EXTENSION IF NOT EXISTS pg_trgm")
        except DatabaseError as error:
            logger.warning(
                "searches in %s read the whole table: PostgreSQL's extension pg_trgm is not there and cannot be made "
                "(%s); have an administrator run CREATE EXTENSION pg_trgm in this database, "
                "then run `python -m django search_indexes`",
                self.table,
                str(error).partition("\n")[0],
            )
            return False
        with connection.cursor() as cursor:
            cursor.execute(_SCHEMA)
            (schema,) = cursor.fetchone()
            # Every search would read the pending list.
            cursor.execute(
                f"CREATE INDEX IF NOT EXISTS {self.name} ON {self.table} "
                f"USING gin ({self.expression} {schema}.gin_trgm_ops) WITH (fastupdate = off)"
            )
        return True
