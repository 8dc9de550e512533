"""`manage.py prepare_home`: what `fairlead up` needs of the database before it starts the other processes.

One command, since each start of Django takes as long as all three steps.
"""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand

from accounts.scopes import Scope


class Command(BaseCommand):
    """Migrates, makes this machine's token where it is missing, and says whether clusters are to be watched."""

    help = "Prepare the database of `fairlead up`; prints yes where there is a Kubernetes cluster to watch, else no."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--token", type=Path, required=True, metavar="FILE", help="where this machine's token is")

    def handle(self, *_args: Any, token: Path, **_options: Any) -> None:
        """Take the three steps in their order."""
        call_command("migrate", interactive=False, verbosity=0)
        call_command("token_create", scope=Scope.ADMIN.value, name="local", if_missing_file=token)
        call_command("watch_clusters", check=True, stdout=self.stdout)
