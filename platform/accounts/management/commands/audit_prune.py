"""`manage.py audit_prune`: removes the oldest entries of the audit log."""

from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone
from django.utils.dateparse import parse_date

from accounts.services.audit_chain import audit_prune
from common.errors import FairleadError


class Command(BaseCommand):
    """Removes the oldest entries; a signed checkpoint keeps the hash chain valid."""

    help = "Removes the entries of the audit log from before a day; export them first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("before", help="first day that is kept, in UTC, such as 2026-01-31")

    def handle(self, *_: Any, before: str, **__: Any) -> None:
        """Print how many entries were removed."""
        try:
            day = parse_date(before)
        except ValueError:
            day = None
        if day is None:
            raise CommandError(f"before is {before[:40]!r}; expected a day such as 2026-01-31")
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        try:
            count = audit_prune(before=start, actor="audit_prune (command line)", now=timezone.now())
        except FairleadError as error:
            raise CommandError(error.message) from error
        self.stdout.write(f"{count} entries removed.")
