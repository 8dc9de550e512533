"""A real PostgreSQL for a module's tests, and a platform on the database with a fake outside."""

from collections.abc import Iterator

import pytest

from tests.deployments._support.fixtures import platform
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.postgres import Postgres, postgres

__all__ = ["platform"]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    try:
        with postgres() as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)
