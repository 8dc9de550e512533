"""Tables of a new SQLite database, made from the models at once: what all migrations lead to, in far less time.

A database that has tables is migrated. So is any other than SQLite: there migrations also make what models do not know
of (`common.db.trigrams`). A test compares what is made here with what the migrations make.
"""

from collections.abc import Iterable

from django.apps import apps
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.db.migrations.migration import Migration
from django.db.migrations.recorder import MigrationRecorder
from django.utils import timezone

from accounts.services import team_default


def is_new() -> bool:
    """Return whether the database is SQLite's and has no table."""
    return connection.vendor == "sqlite" and not connection.introspection.table_names()


def make_tables(migrations: Iterable[Migration]) -> None:
    """Make the tables and rows of a new database in one transaction; `migrations` count as applied afterwards."""
    recorder = MigrationRecorder(connection)
    with connection.schema_editor() as editor:
        editor.create_model(recorder.Migration)
        for model in apps.get_models():
            if model._meta.can_migrate(connection):
                editor.create_model(model)
        recorder.migration_qs.bulk_create(
            [recorder.Migration(app=migration.app_label, name=migration.name) for migration in migrations]
        )
        team_default(now=timezone.now())
        emit_post_migrate_signal(verbosity=0, interactive=False, db=connection.alias)  # content types and permissions
