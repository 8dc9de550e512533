"""`manage.py wait_for`: ends when the database responds, or when it has every table that this code needs.

Pods start in any order; those that need tables wait for the migrating one, so that new code never meets old tables.
"""

import time
from argparse import ArgumentParser
from functools import cache
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

_POLL_S = 1.0
_SAID_EVERY_S = 30.0


class Command(BaseCommand):
    """Looks once a second, and says now and then what it waits for."""

    help = "Waits until the database answers, or has every migration of this version."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("what", choices=["database", "migrations"])
        parser.add_argument("--timeout", type=float, metavar="SECONDS", help="maximum wait (default: unlimited)")

    def handle(self, *_args: Any, what: str, timeout: float | None, **_options: Any) -> None:
        """Return once it is so; CommandError with what is missing after the timeout."""
        began = said_at = time.monotonic()
        while missing := self._missing(what):
            now = time.monotonic()
            if timeout is not None and now - began >= timeout:
                raise CommandError(f"not within {timeout:g} s: {missing}")
            if said_at == began or now - said_at >= _SAID_EVERY_S:
                self.stderr.write(f"waiting: {missing}")
                said_at = now
            time.sleep(_POLL_S)

    def _missing(self, what: str) -> str:
        """Return what is missing in one sentence; empty when complete."""
        try:
            connection.ensure_connection()
            if what == "database":
                return ""
            applied = MigrationRecorder(connection).applied_migrations()
        except DatabaseError as error:
            return f"the database does not answer: {str(error).strip()}"
        finally:
            connection.close()
        missing = [each for each in _migrations() if each not in applied]
        if not missing:
            return ""
        return f"{len(missing)} migrations are not applied yet, {'.'.join(missing[0])} first"


@cache
def _migrations() -> list[tuple[str, str]]:
    """Return the app and name of all migrations of this version, in their order; read once, since there are many."""
    graph = MigrationLoader(None).graph
    return list(dict.fromkeys(node for leaf in graph.leaf_nodes() for node in graph.forwards_plan(leaf)))
