"""`manage.py user_free`: unlinks a user from its account at the provider."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.services.identities import identity_forget
from common.errors import FairleadError


class Command(BaseCommand):
    """Unlinks a user from the provider account that signed in, and ends its sessions and tokens."""

    help = (
        "Unlinks a user from its account at the provider and ends its sessions and tokens; an invitation links another."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the user")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            identity_forget(username=options["name"], actor="user_free (command line)", now=timezone.now())
        except FairleadError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{options['name']} is unlinked from its account at the provider.")
