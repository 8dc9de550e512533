"""The database server goes for ten seconds, at the worst moments, and comes back: a real PostgreSQL, a manual clock.

The server is this module's own, whatever the other tests run on.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import dj_database_url
import pytest
from asgiref.sync import sync_to_async
from django.core.management import call_command
from django.db import OperationalError, close_old_connections, connection, connections
from pytest_django import DjangoDbBlocker

from deployments.domain.phases import Phase
from events.models import Event
from integrations.clusters.base import Desired, Observed, Sample
from tests.deployments._support.fakes import FakeMetrics
from tests.deployments._support.ledger import Ledger
from tests.deployments._support.platform import Platform
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.postgres import Postgres, postgres

pytestmark = [pytest.mark.postgres]


@pytest.fixture(scope="module")
def own_server(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Postgres]:
    """Let the default connection of every thread lead to a server that tests may stop; afterwards to where it led."""
    before = connections.databases["default"]
    try:
        with postgres() as server:
            _lead_to({**before, "OPTIONS": {}, **dj_database_url.parse(server.url)})
            try:
                with django_db_blocker.unblock():
                    call_command("migrate", verbosity=0, interactive=False)
                yield server
            finally:
                _lead_to(before)
    except MissingPartError as missing:
        skip_or_fail(missing)


def _lead_to(database: dict[str, Any]) -> None:
    connections.databases["default"] = database

    def forget() -> None:
        connections["default"].close()
        del connections["default"]

    forget()
    # The thread in which asynchronous tests reach the database has a connection too.
    asyncio.run(sync_to_async(forget)())


@pytest.fixture
def server(own_server: Postgres, transactional_db: None) -> Iterator[Postgres]:
    """Return the server that this test runs on; it runs again afterwards."""
    yield own_server
    if not own_server.is_running:
        own_server.start()
    connection.close()
    asyncio.run(sync_to_async(connections.close_all)())


@pytest.fixture
def rolling(server: Postgres) -> Platform:
    platform = Platform()
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    return platform


def _gone_for_ten_seconds(platform: Platform, server: Postgres) -> None:
    """Let five sweeps go by without a database, then bring it back."""
    applied = list(platform.cluster.applied)
    for _ in range(5):
        close_old_connections()  # as Celery does before each task
        with pytest.raises(OperationalError):
            platform.turn()
    assert platform.cluster.applied == applied, "nothing is applied that is not recorded"
    server.start()
    close_old_connections()


def _ends_right(platform: Platform, ledger: Ledger) -> None:
    """The rollout goes on where it was and ends Healthy; nothing was lost, doubled or applied out of order."""
    # A worker that could not give its lease back holds up the next one until it is out.
    for _ in range(60):
        ledger.note_recorded()
        if platform.rollout().phase == Phase.HEALTHY:
            break
        platform.traffic()
        platform.turn()
    assert platform.rollout().phase == Phase.HEALTHY
    assert platform.cluster.weights()["digits-00002"] == 100
    ledger.check()
    numbers = list(Event.objects.exclude(service=None).order_by("id").values_list("seq", flat=True))
    assert numbers == list(range(1, len(numbers) + 1))


def test_gone_between_two_turns(rolling: Platform, server: Postgres) -> None:
    ledger = Ledger(rolling)
    server.stop()
    _gone_for_ten_seconds(rolling, server)
    _ends_right(rolling, ledger)


def test_gone_between_reading_and_recording(rolling: Platform, server: Postgres) -> None:
    ledger = Ledger(rolling)

    class GoneMeanwhile(FakeMetrics):
        """Counters during whose reading the database goes, once."""

        def __call__(self, observed: Observed) -> Sequence[Sample]:
            if server.is_running:
                server.stop()
            rolling.metrics = metrics
            return metrics(observed)

    metrics, rolling.metrics = rolling.metrics, GoneMeanwhile()
    with pytest.raises(OperationalError):
        rolling.turn()
    _gone_for_ten_seconds(rolling, server)
    _ends_right(rolling, ledger)


def test_gone_between_applying_and_giving_the_lease_back(rolling: Platform, server: Postgres) -> None:
    ledger = Ledger(rolling)
    notes: Callable[[Desired], None] = rolling.cluster.on_apply

    def stop(desired: Desired) -> None:
        notes(desired)
        server.stop()
        rolling.cluster.on_apply = notes

    rolling.cluster.on_apply = stop
    with pytest.raises(OperationalError):
        rolling.turn()
    _gone_for_ten_seconds(rolling, server)
    _ends_right(rolling, ledger)
