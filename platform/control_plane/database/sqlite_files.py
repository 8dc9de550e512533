"""Keeps SQLite's side files (`-wal`, `-shm`) in existence while this process runs.

SQLite removes them with the last connection and creates them with the next, for reads too, which a full disk would
refuse. One idle connection keeps them: reads go on, and writes as long as the log has room of its own.
"""

import sqlite3
from contextlib import suppress
from pathlib import Path

from django.conf import settings

_held: list[sqlite3.Connection] = []


def hold_open() -> None:
    """Open the database for the time of this process, where it is SQLite's and exists."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] != "django.db.backends.sqlite3" or _held:
        return
    with suppress(sqlite3.Error):  # the first query reports why it cannot be opened
        place = f"{Path(database['NAME']).absolute().as_uri()}?mode=rw"
        connection = sqlite3.connect(place, uri=True, check_same_thread=False)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
        _held.append(connection)
