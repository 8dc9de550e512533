"""Schema creation of a new SQLite database, directly from the models: the result of all migrations, in far less time.

A database with tables is migrated. So is any other than SQLite: there migrations also create what models do not
declare (`common.db.trigrams`). A test compares this schema with that of the migrations.
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
