"""The database server goes for ten seconds, at the worst moments, and comes back: a real PostgreSQL, a manual clock.

Runs where the suite runs on a PostgreSQL of its own (`make test-servers`).
"""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async
from django.db import OperationalError, close_old_connections, connection, connections

from deployments.models import Event
from deployments.phases import Phase
from integrations.clusters.base import Desired, Observed, Sample
from tests.deployments.conftest import Platform
from tests.deployments.fakes import FakeMetrics
from tests.deployments.ledger import Ledger
from tests.servers.postgres import FOLDER_VARIABLE, Postgres

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.skipif(FOLDER_VARIABLE not in os.environ, reason="stops its database: `make test-servers` runs it"),
]


@pytest.fixture
def server(transactional_db: None) -> Iterator[Postgres]:
    """Return the server that this suite runs on; it runs again afterwards."""
    server = Postgres(Path(os.environ[FOLDER_VARIABLE]), int(connection.settings_dict["PORT"]))
    yield server
    if not server.is_running:
        server.start()
    connection.close()
    # The thread in which asynchronous tests reach the database keeps its connection; that one is dead too.
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
