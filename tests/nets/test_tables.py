"""Tables stay: columns, indexes and constraints, by their names in the database, whichever app has the model."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from django.apps import apps
from django.db.models import NOT_PROVIDED, Field, Model

from tests.nets._support.modules import PLATFORM
from tests.nets._support.recording import check
from tests.servers.template import copy_sqlite


def models() -> list[type[Model]]:
    """Return the models of our apps with those of their many-to-many relations, by table."""
    ours = [config for config in apps.get_app_configs() if PLATFORM in Path(config.path).parents]
    found = {each for config in ours for each in config.get_models(include_auto_created=True)}
    return sorted(found, key=lambda model: model._meta.db_table)


def lines(model: type[Model]) -> Iterator[str]:
    """Yield a line for each column, index and constraint of a model's table."""
    meta = model._meta
    yield f"table {meta.db_table} ordered by {list(meta.ordering)} unique {sorted(map(sorted, meta.unique_together))}"
    yield from sorted(f"  column {_column(field)}" for field in meta.local_concrete_fields)
    for kind, parts in (("index", meta.indexes), ("constraint", meta.constraints)):
        yield from sorted(f"  {kind} {part.name} {_deconstructed(part)}" for part in parts)


def _column(field: "Field[Any, Any]") -> str:
    words = [str(field.column), field.get_internal_type()]
    for name in ("max_length", "null", "unique", "db_index", "primary_key"):
        if value := getattr(field, name, None):
            words.append(f"{name}={value}")
    for name in ("default", "db_default"):
        value = getattr(field, name)
        if value is not NOT_PROVIDED:
            words.append(f"{name}={value.__name__ if callable(value) else repr(_plain(value))}")
    if field.choices:
        words.append(f"choices={[_plain(value) for value, _ in field.flatchoices]}")
    if field.remote_field is not None:
        target = field.remote_field.model._meta
        remote = field.target_field.column  # type: ignore[attr-defined]
        on_delete = field.remote_field.on_delete.__name__
        words.append(f"to {target.db_table}.{remote} {on_delete} db_constraint={field.db_constraint}")  # type: ignore[attr-defined]
    return " ".join(words)


def _plain(value: Any) -> Any:
    """Return the value of an enumeration, whose own form has the name of its class."""
    return getattr(value, "value", value)


def _deconstructed(part: Any) -> str:
    _, positional, keywords = part.deconstruct()
    rest = {name: value for name, value in sorted(keywords.items()) if name != "name"}
    return f"{type(part).__name__} {positional or ''}{rest}"


def of_sqlite(database: Path) -> Iterator[str]:
    """Yield what a migrated SQLite database has: names of tables and indexes, and the statements that make them."""
    tables = {model._meta.db_table for model in models()}
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute(
            "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY tbl_name, type DESC, name"
        )
        for kind, name, table, statement in rows:
            if table in tables:
                yield f"{kind} {name}: {statement or 'made with its table'}"


def test_tables_of_the_models_are_as_they_were() -> None:
    check("tables.txt", "a table", (line for model in models() for line in lines(model)))


def test_tables_of_a_migrated_database_are_as_they_were(tmp_path: Path) -> None:
    copy_sqlite(tmp_path / "fairlead.sqlite3")
    check("tables_on_sqlite.txt", "a table on SQLite", of_sqlite(tmp_path / "fairlead.sqlite3"))
