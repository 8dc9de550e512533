"""`manage.py search_indexes`: creates the indexes that migrations skipped while the extension pg_trgm was missing."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from common.db.trigrams import TrigramIndex


class Command(BaseCommand):
    """Makes the indexes that are not there; those that are stay."""

    help = "Creates the PostgreSQL indexes for searches by a part of a name, once the extension pg_trgm is available."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Say how many there are now; CommandError where the database can have none."""
        if connection.vendor != "postgresql":
            raise CommandError(f"the database is {connection.vendor}, which has no such indexes; nothing is to be done")
        loader = MigrationLoader(connection)
        wanted = [
            step
            for key, migration in loader.disk_migrations.items()
            if key in loader.applied_migrations
            for step in migration.operations
            if isinstance(step, TrigramIndex)
        ]
        if not all(index.make(connection) for index in wanted):
            raise CommandError("the extension pg_trgm is not there and cannot be made; the line before says why")
        self.stdout.write(f"There are {len(wanted)} indexes for searches: {', '.join(one.name for one in wanted)}.")
