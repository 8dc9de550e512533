"""Pods that need tables wait for whoever makes them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from tests.servers.parts import free_port

ROOT = Path(__file__).parents[2]


@pytest.mark.django_db(transaction=True)
def test_a_database_with_all_tables_is_not_waited_for() -> None:
    call_command("wait_for", "database", timeout=0)
    call_command("wait_for", "migrations", timeout=0)


@pytest.mark.django_db(transaction=True)
def test_a_migration_that_is_missing_is_named_and_waited_for() -> None:
    recorder = MigrationRecorder(connection)
    last = max(name for app, name in recorder.applied_migrations() if app == "deployments")
    recorder.record_unapplied("deployments", last)
    try:
        with pytest.raises(
            CommandError, match=rf"not within 0 s: 1 migrations are not applied yet, deployments.{last}"
        ):
            call_command("wait_for", "migrations", timeout=0)
        call_command("wait_for", "database", timeout=0)
    finally:
        recorder.record_applied("deployments", last)
    call_command("wait_for", "migrations", timeout=0)


def test_a_database_that_is_away_is_told_of() -> None:
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
        "FAIRLEAD_SECRET_KEY": "x" * 40,
        "FAIRLEAD_DATABASE_URL": f"postgres://nobody@127.0.0.1:{free_port()}/nothing",
    }
    done = subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), "wait_for", "database", "--timeout", "0"],
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "not within 0 s: the database does not answer: connection to server" in done.stderr
