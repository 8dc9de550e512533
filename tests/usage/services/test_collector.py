"""The collector: what it was sent is stored once, however the database behaves meanwhile."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import DataError, OperationalError, connection, transaction
from prometheus_client import REGISTRY

from usage import hooks
from usage.models import Collector, HourlyUsage
from usage.services import collector as collecting
from usage.services.collector import UsageCollector
from usage.services.retention import KEPT_FOR, usage_forget

pytestmark = pytest.mark.django_db(transaction=True)
NOW = datetime(2026, 1, 31, 12, 30, tzinfo=UTC)
RECORD = {
    "time": "2026-01-31T12:10:00Z",
    "namespace": "default",
    "route": "digits",
    "backend": "digits-00001",
    "key": "ci",
    "team": "fraud",
    "path": "/v2/models/digits/infer",
    "status": "200",
    "attempts": "1",
}


@pytest.fixture(autouse=True)
def services() -> Iterator[set[tuple[str, str]]]:
    """The services that exist, besides those of the database, which has none here."""
    found = {("default", "digits")}

    def named(namespaces: Any) -> list[tuple[str, str]]:
        return [each for each in found if each[0] in namespaces]

    hooks.services.register(named)
    yield found
    hooks.services.unregister(named)


def record(**changed: str) -> dict[str, str]:
    return RECORD | changed


def requests() -> int:
    return sum(HourlyUsage.objects.values_list("requests", flat=True))


def metric(result: str) -> float:
    return REGISTRY.get_sample_value("fairlead_usage_records_total", {"result": result}) or 0


def test_records_of_many_calls_are_stored_together() -> None:
    collector = UsageCollector("a")
    collector.take([record(), record(status="500")], NOW)
    collector.take([record(time="2026-01-31T13:00:00Z"), record(key="other")], NOW)
    assert HourlyUsage.objects.count() == 0
    assert collector.store(NOW)
    found = HourlyUsage.objects.get(key="ci", hour=datetime(2026, 1, 31, 12, tzinfo=UTC))
    assert (found.requests, found.errors, found.revision, found.team) == (2, 1, "digits-00001", "fraud")
    assert (requests(), Collector.objects.get().batch) == (4, 1)
    assert collector.store(NOW)
    assert (requests(), Collector.objects.get().batch) == (4, 1), "nothing new"


def test_two_collectors_add_to_the_same_hour() -> None:
    first, second = UsageCollector("a"), UsageCollector("b")
    for each in (first, second, first):
        each.take([record()], NOW)
        assert each.store(NOW)
    assert (requests(), HourlyUsage.objects.count(), Collector.objects.count()) == (3, 1, 2)


def test_while_the_database_is_away_all_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    collector = UsageCollector("a")
    collector.take([record()], NOW)

    def away(*_: object) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with connection.execute_wrapper(away):
        assert not collector.store(NOW)
        collector.take([record(), record(key="other")], NOW)
        assert not collector.store(NOW)
    assert (requests(), "usage cannot be stored now and is kept" in caplog.text) == (0, True)
    assert collector.store(NOW)
    assert (requests(), Collector.objects.get().batch) == (3, 2)


def test_a_batch_whose_commit_was_not_confirmed_is_stored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = UsageCollector("a")
    collector.take([record()], NOW)
    exit_of = transaction.Atomic.__exit__

    def cut(self: transaction.Atomic, *causes: Any) -> None:
        exit_of(self, *causes)
        if not connection.in_atomic_block:
            raise OperationalError("connection lost while committing")

    with monkeypatch.context() as patched:
        patched.setattr(transaction.Atomic, "__exit__", cut)
        assert not collector.store(NOW)
    assert requests() == 1, "the commit was done"
    collector.take([record()], NOW)
    assert collector.store(NOW)
    assert (requests(), Collector.objects.get().batch) == (2, 2)


def test_a_rolled_back_batch_is_stored_with_the_next_call(monkeypatch: pytest.MonkeyPatch) -> None:
    collector = UsageCollector("a")
    collector.take([record(), record(key="other")], NOW)
    inserts = 0

    def fails(execute: Any, sql: str, *rest: Any) -> Any:
        nonlocal inserts
        inserts += "INSERT" in sql and "hourlyusage" in sql
        if inserts == 2:
            raise OperationalError("deadlock detected")
        return execute(sql, *rest)

    with connection.execute_wrapper(fails):
        assert not collector.store(NOW)
    assert (requests(), Collector.objects.count()) == (0, 0)
    assert collector.store(NOW)
    assert requests() == 2


def test_what_is_of_no_service_is_counted_as_such(services: set[tuple[str, str]]) -> None:
    collector, before = UsageCollector("a"), metric("no_service")
    collector.take([record(), record(route="shop"), record(namespace="kube-system")], NOW)
    assert collector.store(NOW)
    assert (requests(), metric("no_service") - before) == (1, 2)
    services.clear()
    collector.take([record()], NOW)
    assert collector.store(NOW)
    assert requests() == 1


def test_bad_records_are_skipped_and_named(caplog: pytest.LogCaptureFixture) -> None:
    collector, before = UsageCollector("a"), (metric("read"), metric("bad"))
    collector.take([record(), record(time="yesterday"), {}, record(key="x" * 1000)], NOW)
    assert collector.store(NOW)
    assert requests() == 1
    assert (metric("read") - before[0], metric("bad") - before[1]) == (1, 3)
    assert "3 records are skipped, the first because its time is 'yesterday'" in caplog.text


def test_groups_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collecting, "MOST_GROUPS", 3)
    collector, before = UsageCollector("a"), metric("dropped")
    for number in range(5):
        collector.take([record(key=f"key-{number}")], NOW)
    collector.take([record(key="key-0")], NOW)
    assert collector.store(NOW)
    assert (requests(), metric("dropped") - before) == (4, 2)


@pytest.mark.parametrize("error", [DataError("bigint out of range"), OverflowError("int too large")])
def test_sums_that_the_database_cannot_hold_do_not_stop_the_next(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    collector, before = UsageCollector("a"), metric("dropped")
    collector.take([record(), record()], NOW)

    def refuses(_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(collecting, "hours_add", refuses)
        assert collector.store(NOW)
    collector.take([record()], NOW)
    assert collector.store(NOW)
    assert (requests(), metric("dropped") - before) == (1, 2)


def test_rows_of_ended_collectors_are_deleted_past_the_retention() -> None:
    UsageCollector("a").store(NOW)
    for name in ("a", "b"):
        collector = UsageCollector(name)
        collector.take([record()], NOW)
        collector.store(NOW if name == "a" else NOW + timedelta(days=1))
    usage_forget(now=NOW + KEPT_FOR + timedelta(hours=1))
    assert [each.name for each in Collector.objects.all()] == ["b"]
    assert REGISTRY.get_sample_value("fairlead_usage_stored_timestamp_seconds") == (NOW + timedelta(days=1)).timestamp()
