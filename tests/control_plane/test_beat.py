import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from celery import Celery
from django.conf import settings
from redis import Redis as Client

from control_plane.beat import LEASE_S, Lease, Scheduler
from control_plane.celery import app
from tests.servers.parts import MissingPartError, free_port, skip_or_fail
from tests.servers.redis import Redis, redis

DEADLINE_S = 120.0


@pytest.fixture
def broker() -> Iterator[Redis]:
    try:
        with redis() as running:
            yield running
    except MissingPartError as missing:
        skip_or_fail(missing)


@dataclass
class Beat:
    """A beat in a process of its own, as the chart starts it."""

    process: "subprocess.Popen[bytes]"
    metrics_port: int

    def value(self, name: str) -> float:
        """Return a metric of its page; -1 while it has none."""
        try:
            page = httpx.get(f"http://127.0.0.1:{self.metrics_port}/metrics", trust_env=False).text
        except httpx.TransportError:
            return -1.0
        found = re.search(rf"^{re.escape(name)} (\S+)$", page, re.MULTILINE)
        return float(found[1]) if found else -1.0

    @property
    def sweeps(self) -> float:
        return self.value('fairlead_tasks_sent_total{task="deployments.tasks.sweep"}')

    @property
    def is_active(self) -> bool:
        return self.value("fairlead_beat_active") == 1


@pytest.fixture
def beats(broker: Redis, tmp_path: Path) -> Iterator[list[Beat]]:
    """Three beats at one Redis."""
    started: list[Beat] = []
    try:
        for number in range(3):
            port, home = free_port(), tmp_path / str(number)
            home.mkdir()
            variables = {
                **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
                "PYTHONPATH": str(settings.ROOT / "platform"),
                "FAIRLEAD_HOME": str(home),
                "FAIRLEAD_SECRET_KEY": "x" * 40,
                "FAIRLEAD_BROKER_URL": broker.url,
                "FAIRLEAD_BEAT_METRICS_ADDRESS": f"127.0.0.1:{port}",
            }
            command = [sys.executable, "-m", "celery", "--app=fairlead", "--skip-checks", "beat", "--pidfile="]
            started.append(Beat(subprocess.Popen([*command, "--loglevel=INFO"], env=variables), port))
        yield list(started)
    finally:
        for beat in started:
            beat.process.kill()
            beat.process.wait()


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"{what} took longer than {DEADLINE_S} s"
        time.sleep(0.05)


def test_one_of_three_beats_acts_and_is_replaced(beats: list[Beat], broker: Redis) -> None:
    def active() -> list[Beat]:
        return [beat for beat in beats if beat.is_active]

    def swept() -> float:
        return sum(max(beat.sweeps, 0) for beat in beats)

    until(lambda: all(beat.value("fairlead_beat_active") >= 0 for beat in beats), "the start")
    until(lambda: len(active()) == 1, "one of them")
    (first,) = active()
    until(lambda: first.sweeps >= 2, "sweeps")
    assert not any(max(beat.sweeps, 0) for beat in beats if beat is not first), "the others have sent none"

    beats.remove(first)
    with Client.from_url(broker.url) as client:
        held = client.get("fairlead:beat")
        first.process.send_signal(signal.SIGTERM)
        first.process.wait(DEADLINE_S)
        assert client.get("fairlead:beat") != held, "who stops keeps no lease that others would wait for"
        until(lambda: len(active()) == 1, "the change")

    broker.stop()
    broker.start()  # empty: the lease is gone too
    sent = swept()
    until(lambda: len(active()) == 1 and swept() > sent, "sweeps again")

    (second,) = active()
    beats.remove(second)
    second.process.kill()
    with Client.from_url(broker.url) as client:
        assert 0 < client.pttl("fairlead:beat") <= LEASE_S * 1000, "the longest wait for another"
    (last,) = beats
    sent = last.sweeps
    until(lambda: last.is_active and last.sweeps > sent, "sweeps of the last one")


def test_a_lease_is_held_by_one_and_lost_without_redis(broker: Redis) -> None:
    celery = Celery("leases", broker=broker.url, set_as_current=False)
    first, second = Lease(celery), Lease(celery)
    assert (first.is_held(), second.is_held()) == (True, False)
    first.release()
    until(second.is_held, "the lease")
    assert not first.is_held()
    broker.stop()
    until(lambda: not second.is_held(), "the loss")
    broker.start()
    until(lambda: first.is_held() or second.is_held(), "the lease again")
    assert not (first.is_held() and second.is_held())
    first.release()
    second.release()


def test_without_redis_a_beat_always_acts() -> None:
    celery = Celery("alone", broker="memory://", set_as_current=False)
    assert all(Lease(celery).is_held() for _ in range(2))


def test_every_task_is_due_when_beat_starts_and_then_as_the_schedule_says() -> None:
    scheduler = Scheduler(app)
    assert scheduler.schedule.keys() >= app.conf.beat_schedule.keys()
    for name in app.conf.beat_schedule:
        entry = scheduler.schedule[name]
        assert entry.is_due().is_due, name
        assert not next(entry).is_due().is_due, name


def test_beat_writes_no_file() -> None:
    Scheduler(app).sync()
    assert not list(settings.HOME.glob("*beat*"))
