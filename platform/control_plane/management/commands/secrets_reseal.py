"""`manage.py secrets_reseal`: re-encrypts secrets after a change of `FAIRLEAD_SECRET_KEY`, to retire earlier keys."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from control_plane.key_rotation import reseal_everything


class Command(BaseCommand):
    """Re-encrypts the secrets of the database and recordings; a second run changes nothing."""

    help = "Encrypts stored secrets, and signs sessions, with the present secret key instead of an earlier one."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--stopped", action="store_true", help="includes unfinished recordings; no worker may run")

    def handle(self, *_args: Any, stopped: bool, **_options: Any) -> None:
        """Print how many of each kind were changed; CommandError where something still needs an earlier key."""
        done = list(reseal_everything(is_stopped=stopped))
        self.stdout.write(", ".join(f"{each.what} {each.changed}" for each in done))
        left = [f"{each.what}: {sentence}" for each in done for sentence in each.left]
        if left:
            raise CommandError(f"keep the earlier secret key, it may still be needed; {'; '.join(left)}")
