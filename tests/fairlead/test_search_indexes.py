"""Searches by a part of a name on a real PostgreSQL: with the extension pg_trgm, and where it may not be made."""

import os
import subprocess
import sys
from collections.abc import Iterator

import dj_database_url
import psycopg2
import pytest
from django.db import connections
from django.db.models import Model, Q, QuerySet
from django.utils import timezone
from pytest_django import DjangoDbBlocker

from deployments.models import Cluster, InferenceService
from deployments.rows import searched_text
from deployments.selectors import service_search
from registry.filters import OF_MODELS
from registry.models import RegisteredModel
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.postgres import Postgres, postgres

pytestmark = [pytest.mark.postgres]

ROWS = 4000
INDEXES = {"model_description_parts", "model_name_parts", "service_parts"}


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    try:
        with postgres() as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)


def django(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"FAIRLEAD_DATABASE_URL": url}
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120, check=False)


def ask(url: str, *statements: str) -> list[tuple[str, ...]]:
    """Run each statement by itself, and return the rows of the last."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def indexes(url: str) -> set[str]:
    return {name for (name,) in ask(url, "SELECT indexname FROM pg_indexes WHERE indexname LIKE '%\\_parts'")}


@pytest.fixture(scope="module")
def filled(server: Postgres, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Give the alias of a database with many services and models."""
    migrated = django(server.url, "migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert "pg_trgm" not in migrated.stderr
    alias, now = "filled", timezone.now()
    connections.databases[alias] = {
        **connections.databases["default"],
        "OPTIONS": {},
        **dj_database_url.parse(server.url),
    }
    with django_db_blocker.unblock():
        try:
            cluster = Cluster.objects.using(alias).create(name="local", kind="local", created_at=now)
            names = [f"service-{number:05}" for number in range(ROWS)]
            InferenceService.objects.using(alias).bulk_create(
                InferenceService(
                    cluster=cluster,
                    namespace="default",
                    name=name,
                    document={},
                    searched=searched_text("default", name, "digits"),
                    created_at=now,
                    created_by="test",
                )
                for name in names
            )
            RegisteredModel.objects.using(alias).bulk_create(
                RegisteredModel(name=f"model-{number:05}", created_at=now, created_by="test") for number in range(ROWS)
            )
            with connections[alias].cursor() as cursor:
                cursor.execute("VACUUM ANALYZE")
            yield alias
        finally:
            connections[alias].close()
            delattr(connections._connections, alias)
            del connections.databases[alias]


def of_services(alias: str, words: str) -> QuerySet[Model]:
    found = InferenceService.objects.using(alias).filter(service_search(words.split()))
    return found.order_by("namespace", "name")[:51]


def of_models(alias: str, part: str) -> QuerySet[Model]:
    condition: Q = next(one for one in OF_MODELS if one.name == "search").condition(part)
    return RegisteredModel.objects.using(alias).filter(condition).order_by("-pk")[:51]


@pytest.mark.parametrize("rows_of", [of_services, of_models], ids=["services", "models"])
@pytest.mark.parametrize(("part", "count"), [("-00042", 1), ("nothing", 0), ("e-0004", 10), ("e", 51)])
def test_no_search_reads_more_than_it_shows(filled: str, rows_of: type, part: str, count: int) -> None:
    if rows_of is of_models:
        part = part.replace("e-", "l-")
    rows = rows_of(filled, part)
    plan = rows.explain(analyze=True)
    assert len(rows) == count
    assert "Seq Scan" not in plan, plan
    assert "Rows Removed by Filter" not in plan, plan


def test_without_the_right_to_the_extension_everything_works_and_the_log_says_what_to_do(server: Postgres) -> None:
    ask(server.url, "CREATE ROLE plain LOGIN", "CREATE DATABASE plain")
    ours = server.url.replace("postgres@", "plain@").removesuffix("/postgres") + "/plain"
    theirs = server.url.removesuffix("/postgres") + "/plain"
    ask(theirs, "GRANT ALL ON SCHEMA public TO plain")

    migrated = django(ours, "migrate")
    again = django(ours, "search_indexes")

    assert migrated.returncode == 0, migrated.stderr
    for table in ("registry_registeredmodel", "deployments_inferenceservice"):
        assert (
            f"searches in {table} read the whole table: PostgreSQL's extension pg_trgm is not there" in migrated.stderr
        )
    assert "permission denied" in migrated.stderr
    assert again.returncode != 0
    assert "cannot be made" in again.stderr
    assert not indexes(theirs)

    ask(theirs, "CREATE EXTENSION pg_trgm")
    made = django(ours, "search_indexes")
    assert made.returncode == 0, made.stderr
    assert "There are 3 indexes" in made.stdout
    assert indexes(theirs) == INDEXES


def test_another_database_has_none_and_says_so() -> None:
    told = django("", "search_indexes")
    assert told.returncode != 0
    assert "the database is sqlite, which has no such indexes" in told.stderr
