"""`manage.py token_create`: creates the first API token, with access to the database alone."""

import os
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.domain.scopes import Scope
from accounts.selectors import token_of
from accounts.services import token_create, token_revoke, user_get_or_create
from common import durations
from common.errors import FairleadError, NotAuthenticated

_ACTOR = "token_create (command line)"


class Command(BaseCommand):
    """Makes a token and prints it, or writes it to a file."""

    help = "Creates an API token, and shows it once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--name", required=True, help="name of the token")
        parser.add_argument("--scope", choices=[scope.value for scope in Scope], default=Scope.READ.value)
        parser.add_argument("--user", default="admin", help="owner of the token; created if unknown (default: admin)")
        parser.add_argument("--expires-in", metavar="DURATION", help="lifetime, such as 12h (default: the platform's)")
        where = parser.add_mutually_exclusive_group()
        where.add_argument(
            "--output", type=Path, metavar="FILE", help="writes the token to FILE (mode 0600) and prints nothing"
        )
        where.add_argument(
            "--if-missing-file",
            type=Path,
            metavar="FILE",
            help="like --output, but does nothing if FILE already contains a valid token",
        )

    def handle(self, *_: Any, **options: Any) -> None:
        file: Path | None = options["output"] or options["if_missing_file"]
        if options["if_missing_file"] and _holds_live_token(options["if_missing_file"]):
            return
        asked = options["expires_in"]
        try:
            created = token_create(
                user=user_get_or_create(username=options["user"], now=timezone.now()),
                name=options["name"],
                scope=Scope(options["scope"]),
                lifetime=durations.parse(asked, field="--expires-in") if asked else settings.TOKEN_LIFETIME,
                now=timezone.now(),
                actor=_ACTOR,
            )
        except FairleadError as error:
            raise CommandError(error.message) from error
        if file is None:
            self.stdout.write(created.secret)
            return
        try:
            _write_private(file, created.secret + "\n")
        except OSError as error:
            token_revoke(token=created.token, now=timezone.now(), actor=_ACTOR)
            raise CommandError(f"the token cannot be written to {file}: {error.strerror}; it was revoked") from error


def _holds_live_token(file: Path) -> bool:
    try:
        secret = file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return False
    try:
        token_of(secret=secret, now=timezone.now())
    except NotAuthenticated:
        return False
    return True


def _write_private(file: Path, text: str) -> None:
    """Write `text` to `file` atomically, by rename, never readable by others."""
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # mkstemp makes it 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
