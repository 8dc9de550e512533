"""One platform for all modules of a test process that start it alike; each module finds it empty.

Between two modules its services are deleted by the API, and its tables get back what they had when it was new. It ends
after the last test in a row that uses it, since at rest it takes 3 % of a core.
"""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from tests.e2e.harness import Platform, until

_EMPTY_WITHIN_S = 120.0
Start = Callable[[], AbstractContextManager[Platform]]


class SharedPlatforms:
    """The running platforms of this process, by what they were started as."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[Platform, ExitStack]] = {}
        self.are_used_next = True

    @contextmanager
    def lend(self, kind: str, start: Start) -> Iterator[Platform]:
        """Give the platform of this kind, started where none runs, and empty it afterwards.

        Where none is used next, all end here: a platform on Kubernetes has to end before its cluster, which the session
        has.
        """
        if kind not in self._running:
            stack = ExitStack()
            self._running[kind] = stack.enter_context(start()), stack
            _copy(_database(self._running[kind][0]), _as_new(self._running[kind][0]))
        platform, _ = self._running[kind]
        yield platform
        if not self.are_used_next:
            self.close()
            return
        try:
            empty(platform)
        except BaseException:
            self._end(kind)  # the next module gets a new one
            raise

    def close(self) -> None:
        """End all of them."""
        for kind in list(self._running):
            self._end(kind)

    def _end(self, kind: str) -> None:
        _, stack = self._running.pop(kind)
        stack.close()


def empty(platform: Platform) -> None:
    """Delete the services of a running platform, wait until they are gone, and put back the rows of its beginning."""
    with platform.client() as client:
        pools = [(each["namespace"], each["name"]) for each in client.all("model-pools")]
        # Services leave before their pools.
        for each in sorted(client.all("services"), key=lambda each: (each["namespace"], each["name"]) in pools):
            client.delete(f"services/{each['namespace']}/{each['name']}")
        until(lambda: not client.all("services"), _EMPTY_WITHIN_S, "the end of all services")
    with closing(sqlite3.connect(_database(platform), timeout=60, isolation_level=None)) as database:
        database.execute("ATTACH ? AS new", [str(_as_new(platform))])
        database.execute("BEGIN IMMEDIATE")
        tables = database.execute("SELECT name FROM new.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
        for (table,) in tables.fetchall():
            database.execute(f'DELETE FROM main."{table}"')
            database.execute(f'INSERT INTO main."{table}" SELECT * FROM new."{table}"')
        database.execute("COMMIT")


def _database(platform: Platform) -> Path:
    return platform.home / "fairlead.sqlite3"


def _as_new(platform: Platform) -> Path:
    return platform.home.parent / "as-new.sqlite3"


def _copy(database: Path, to: Path) -> None:
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(to)) as copy:
        source.backup(copy)


_PLATFORMS = SharedPlatforms()


@pytest.fixture(scope="session")
def shared_platforms() -> Iterator[SharedPlatforms]:
    """The platforms that modules of this process share."""
    yield _PLATFORMS
    _PLATFORMS.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """End the platforms with the last test in a row that uses one of them."""
    _PLATFORMS.are_used_next = "shared_platforms" in getattr(nextitem, "fixturenames", ())
