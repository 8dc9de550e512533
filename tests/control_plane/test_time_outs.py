"""Servers that are away hold no process: one that takes no connection, and one that takes them and is silent."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from celery import Celery
from django.db.utils import ConnectionHandler
from kombu.exceptions import OperationalError as BrokerError
from psycopg2 import OperationalError

from common.errors import Unavailable
from control_plane import env
from control_plane.celery import NETWORK_BROKER
from integrations.metrics.prometheus import Prometheus
from tests._support.blackhole import blackhole

SPARE_S = 8.0


@contextmanager
def silent() -> Iterator[int]:
    """Give a port of 127.0.0.1 that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(10)
        yield int(server.getsockname()[1])


def database(port: int) -> None:
    ConnectionHandler({"default": env.database(f"postgres://fairlead@127.0.0.1:{port}/fairlead")})["default"].connect()


def broker(port: int) -> None:
    with Celery("away", broker=f"redis://127.0.0.1:{port}/0", set_as_current=False) as app:
        app.conf.update(broker_transport_options=NETWORK_BROKER)
        app.send_task("hint", retry=False)


def prometheus(port: int) -> None:
    Prometheus(f"http://127.0.0.1:{port}").ask(["up"])


def _fails(call: Callable[[int], None], error: type[Exception], port: int) -> float:
    began = time.monotonic()
    with pytest.raises(error):
        call(port)
    return time.monotonic() - began


def test_servers_that_are_away_are_given_up_in_time() -> None:
    with blackhole() as away, silent() as mute, ThreadPoolExecutor() as pool:
        cases = [
            (database, OperationalError, away, 5.0),
            (broker, BrokerError, away, 2.0),
            (broker, BrokerError, mute, 5.0),
            (prometheus, Unavailable, away, 2.0),
            (prometheus, Unavailable, mute, 3.0),
        ]
        waited = [pool.submit(_fails, call, error, port) for call, error, port, _ in cases]
        for (call, _, _, limit_s), each in zip(cases, waited, strict=True):
            assert limit_s - 0.5 < each.result(timeout=30) < limit_s + SPARE_S, call.__name__


def test_the_url_of_the_database_says_another_time() -> None:
    options = env.database("postgres://db/fairlead?connect_timeout=9&keepalives_idle=5")["OPTIONS"]
    assert (options["connect_timeout"], options["keepalives_idle"]) == (9, 5)
    assert options["tcp_user_timeout"] == 30_000
    assert "OPTIONS" not in env.database("sqlite:///x.sqlite3")
