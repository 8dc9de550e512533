"""`manage.py prepare_home`: database preparation for `fairlead up`, before it starts the other processes.

One command, since each start of Django takes as long as all three steps.
"""

import gc
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from accounts.domain.scopes import Scope
from control_plane.checks import TAG
from control_plane.database.new_database import is_new, make_tables


class Command(BaseCommand):
    """Makes the tables or migrates them, where that is needed, makes this machine's token where it is missing, and says
    whether clusters are to be watched."""

    requires_system_checks = (TAG,)  # all other checks are of the code: the tests run them
    help = "Prepares the database of `fairlead up`; prints yes if there is a Kubernetes cluster to watch, else no."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--token", type=Path, required=True, metavar="FILE", help="file with this machine's token")

    def handle(self, *_args: Any, token: Path, **_options: Any) -> None:
        """Take the three steps in their order."""
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
        if plan and is_new():
            make_tables(migration for migration, _backwards in plan)
        elif plan:
            gc.disable()  # Django rebuilds all models for each change; a quarter of that is garbage collection
            try:
                call_command("migrate", interactive=False, verbosity=0)
            finally:
                gc.enable()
        call_command("token_create", scope=Scope.ADMIN.value, name="local", if_missing_file=token)
        call_command("watch_clusters", check=True, stdout=self.stdout)
