"""A real PostgreSQL for a module's tests."""

from collections.abc import Iterator

import pytest

from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.postgres import Postgres, postgres


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    try:
        with postgres() as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)
