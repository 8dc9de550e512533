"""Migrations go forward and back, and an older home comes along when the platform starts."""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.operations import AddField
from django.db.models import NOT_PROVIDED
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from accounts.models import User
from clusters.models import Cluster
from common.encryption import unseal
from fairlead_cli.up import preparation
from registry.models import ModelVersion

OWN = ("accounts", "registry", "deployments")
MOVED = ("clusters", "events", "gpus", "recordings", "model_jobs")
"""Apps whose first tables `deployments` made."""
LATER = ("access", "custom_resources", "fleet", "sealed_secrets", "usage")
NEWEST = 5
"""How many migrations are taken back where there is no time for all."""
MOVES = [*((app, "0001_initial") for app in MOVED), ("deployments", "0052_models_in_rooms_of_their_own")]


def shape(of: BaseDatabaseWrapper) -> dict[str, Any]:
    """Return every table of ours: its columns with their types, its indexes and constraints."""
    with of.cursor() as cursor:
        tables = [table for table in of.introspection.table_names(cursor) if table.startswith((*OWN, *LATER))]
        return {
            table: (
                sorted((column.name, str(column.type_code), column.null_ok) for column in _columns(of, cursor, table)),
                sorted(
                    (_names(each["columns"]), each["unique"], each["primary_key"], each["index"], each["check"])
                    for each in of.introspection.get_constraints(cursor, table).values()
                ),
            )
            for table in tables
        }


def _names(columns: Sequence[str | None] | None) -> list[str]:
    """Return the columns of an index, in order; one over an expression has a place without a name there."""
    return sorted(str(column) for column in columns or ())


def _columns(of: BaseDatabaseWrapper, cursor: Any, table: str) -> Any:
    return of.introspection.get_table_description(cursor, table)


def test_every_change_of_a_model_has_its_migration(db: None) -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


@pytest.mark.parametrize(("app", "name"), [*MOVES, ("registry", "0011_import_is_a_claimed_job")])
def test_a_model_moves_without_a_statement(
    app: str, name: str, transactional_db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    for backwards in (False, True):
        call_command("sqlmigrate", app, name, backwards=backwards, no_color=True)
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if line and not line.startswith(("--", "BEGIN", "COMMIT"))] == []


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_rows_of_moved_models_stay_where_they_are_both_ways() -> None:
    before, after = ("deployments", "0051_kept_batch_size"), MOVES[-1]
    try:
        MigrationExecutor(connection).migrate([after])
        tables = shape(connection)
        Cluster.objects.create(name="elsewhere", kind="kubernetes", created_at=timezone.now())
        executor = MigrationExecutor(connection)
        executor.migrate([before])
        then = executor.loader.project_state([before]).apps
        assert then.get_model("deployments", "Cluster").objects.filter(name="elsewhere").exists()
        assert shape(connection) == tables
        MigrationExecutor(connection).migrate([after])
        assert shape(connection) == tables
    finally:
        call_command("migrate", verbosity=0)
    Cluster.objects.get(name="elsewhere").delete()


FIRST_RELEASE = {"accounts": "0005", "registry": "0003", "deployments": "0032"}
"""The last migrations of 0.1.0, up to which every table was made anew."""


def test_the_version_before_can_write_to_the_tables_of_this_one() -> None:
    missing = [
        f"{app} {name}: {step.model_name}.{step.name}"
        for (app, name), migration in MigrationLoader(None).disk_migrations.items()
        if app in OWN and name[:4] > FIRST_RELEASE[app]
        for step in migration.operations
        if isinstance(step, AddField) and not step.field.null and step.field.db_default is NOT_PROVIDED
    ]
    assert not missing, "a column that the version before does not name needs a default of the database"


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("app", OWN)
def test_every_migration_of_an_app_can_be_taken_back_and_made_again(app: str) -> None:
    before = shape(connection)
    try:
        call_command("migrate", app, "zero", verbosity=0)
        assert not [table for table in shape(connection) if table.startswith(f"{app}_")]
    finally:
        call_command("migrate", verbosity=0)
    assert shape(connection) == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("app", [*OWN, *LATER])
def test_the_newest_migrations_of_an_app_can_be_taken_back_and_made_again(app: str) -> None:
    numbered = sorted(name for its, name in MigrationLoader(None).disk_migrations if its == app)
    before = shape(connection)
    try:
        call_command("migrate", app, numbered[max(0, len(numbered) - 1 - NEWEST)], verbosity=0)
    finally:
        call_command("migrate", verbosity=0)
    assert shape(connection) == before


@pytest.fixture
def first_home(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[Path]:
    """Return a home whose database is as the first release made it, with a user and a checked model version in it."""
    database = tmp_path / "fairlead.sqlite3"
    alias = "first"
    connections.databases[alias] = {
        **connections.databases["default"],
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(database),
        "OPTIONS": {"transaction_mode": "IMMEDIATE"},
    }
    targets = [(app, "0001_initial") for app in OWN]
    with django_db_blocker.unblock():
        try:
            executor = MigrationExecutor(connections[alias])
            executor.migrate(targets)
            then = executor.loader.project_state(targets).apps
            now = timezone.now()
            model = then.get_model("registry", "RegisteredModel").objects.using(alias)
            version = then.get_model("registry", "ModelVersion").objects.using(alias)
            then.get_model("accounts", "User").objects.using(alias).create(username="alice")
            version.create(
                model=model.create(name="digits", created_at=now, created_by="alice"),
                number=1,
                digest="sha256:1",
                artifact_uri="file:///artifacts/1",
                size_bytes=1,
                source_name="model.onnx",
                status="READY",
                created_at=now,
                created_by="alice",
            )
            connections[alias].close()
            yield tmp_path
        finally:
            connections[alias].close()
            delattr(connections._connections, alias)
            del connections.databases[alias]


def test_an_older_home_is_brought_to_the_present_tables_at_start(
    first_home: Path, django_db_blocker: DjangoDbBlocker
) -> None:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("FAIRLEAD_DATABASE")}
    preparation.migrate(variables | {"FAIRLEAD_HOME": str(first_home)})
    with sqlite3.connect(first_home / "fairlead.sqlite3") as database:
        done = {(app, name) for app, name in database.execute("SELECT app, name FROM django_migrations")}
    database.close()
    wanted = set(MigrationExecutor(connections["first"]).loader.graph.nodes)
    assert wanted <= done
    with django_db_blocker.unblock():
        assert [user.username for user in User.objects.using("first").filter(is_active=True)] == ["alice"]
        (version,) = ModelVersion.objects.using("first").select_related("model")
        for model in apps.get_models():
            if model._meta.app_label in OWN + MOVED:
                assert model._default_manager.using("first").count() >= 0, f"{model} can be read"
    assert (version.model.name, version.number, version.status) == ("digits", 1, "READY")


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_secrets_of_webhooks_are_sealed_and_can_be_had_back() -> None:
    before, after = ("deployments", "0004_webhooks"), ("deployments", "0005_webhooks_of_teams")

    def tables(target: tuple[str, str]) -> Any:
        executor = MigrationExecutor(connection)
        executor.migrate([target])
        return executor.loader.project_state([target]).apps.get_model("deployments", "Webhook").objects

    try:
        tables(before).create(
            url="https://a.example/", events=[], secret="whsec_1", created_at=timezone.now(), created_by="alice"
        )
        sealed = tables(after).get().sealed_secret
        assert unseal(sealed, purpose="secret of a webhook") == "whsec_1" != sealed
        assert tables(before).get().secret == "whsec_1"
        tables(before).all().delete()
    finally:
        call_command("migrate", verbosity=0)
