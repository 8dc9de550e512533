"""`manage.py audit_verify`: verifies the hash chain of the audit log."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.domain.audit_chain import Checkpoint
from accounts.selectors.audit_chain import audit_verify
from common.errors import FairleadError

_MAX_BYTES = 10_000


class Command(BaseCommand):
    """Verifies the hash chain of the audit log; the exit status is 1 where it is broken."""

    help = "Verifies that no entry of the audit log was changed, removed, inserted or moved since it was chained."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="also verifies against this checkpoint")
        parser.add_argument("--save", type=Path, metavar="FILE", help="writes the newest checkpoint; keep it elsewhere")

    def handle(self, *_: Any, checkpoint: Path | None, save: Path | None, **__: Any) -> None:
        """Print what was checked; CommandError with the first fault."""
        try:
            external = None if checkpoint is None else Checkpoint.of_text(_read(checkpoint))
        except FairleadError as error:
            raise CommandError(error.message) from error
        found = audit_verify(external=external, progress=lambda count: self.stderr.write(f"{count} entries checked"))
        if found.broken:
            raise CommandError(f"the audit log is broken: {found.broken}")
        self.stdout.write(f"{found.checked} entries are whole, {found.pruned} pruned, {found.waiting} not chained yet")
        if save is not None:
            if found.newest is None:
                raise CommandError("nothing is signed yet; the worker chains new entries every 5 s")
            newest, signature = found.newest
            try:
                save.write_text(newest.text(signature))
            except OSError as error:
                raise CommandError(f"{save} cannot be written: {error.strerror}") from error


def _read(file: Path) -> str:
    try:
        with file.open(encoding="utf-8") as opened:
            return opened.read(_MAX_BYTES)
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
