"""The indexes of searches by a part of a name, where PostgreSQL's extension pg_trgm may not be made."""

import psycopg2
import pytest

from tests.control_plane.managing import django
from tests.servers.postgres import Postgres

pytestmark = [pytest.mark.postgres]

INDEXES = {"model_description_parts", "model_name_parts", "service_parts"}


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
