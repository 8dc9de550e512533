"""`manage.py user_switch`: activates or deactivates a user."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.services.oidc_users import user_switch
from common.errors import FairleadError


class Command(BaseCommand):
    """Activates or deactivates a user; roles stay."""

    help = "Activates or deactivates a user; sign-in, sessions and tokens of a deactivated user are refused."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the user")
        parser.add_argument("state", choices=["on", "off"])

    def handle(self, *_: Any, **options: Any) -> None:
        name, state = options["name"], options["state"]
        try:
            user_switch(username=name, is_active=state == "on", actor="user_switch (command line)", now=timezone.now())
        except FairleadError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{name} is {state}.")
