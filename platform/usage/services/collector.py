"""Usage collector: counts what gateways on Kubernetes export of their access log, and stores it each second.

Records are summed in memory. What is stored at once is a numbered batch: its sums and its number are in one
transaction, so that a batch whose commit was not confirmed, as where the database went away, is stored once. A killed
collector loses what it has not stored.
"""

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import DataError, Error, transaction
from prometheus_client import Counter, Gauge

from usage import hooks
from usage.domain.line import Group, Sums
from usage.domain.record import MOST_GROUPS, by_service, merge, read_records
from usage.models import Collector
from usage.services.hours import hours_add

logger = logging.getLogger(__name__)
RECORDS = Counter("fairlead_usage_records_total", "Log records of gateways, by what became of them.", ["result"])
STORED_AT = Gauge("fairlead_usage_stored_timestamp_seconds", "When the collector last stored all that it had.")
for _result in ("read", "bad", "no_service", "dropped"):
    RECORDS.labels(_result)


@dataclass(frozen=True, slots=True)
class _Batch:
    number: int
    sums: Mapping[Group, Sums]


class UsageCollector:
    """Counts records; any thread may call `take`, and one thread calls `store`.

    Args:
        name: of this process alone.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._pending: dict[Group, Sums] = {}
        self._batch = _Batch(0, {})

    def take(self, records: Sequence[Mapping[str, str]], now: datetime) -> None:
        """Add records to what will be stored; beyond a bound of groups they are dropped and counted as such."""
        read = read_records(records, now)
        with self._lock:
            dropped = merge(self._pending, read.sums, MOST_GROUPS)
        RECORDS.labels("read").inc(read.lines)
        RECORDS.labels("bad").inc(read.bad)
        RECORDS.labels("dropped").inc(dropped)
        if read.bad:
            logger.warning("%d records are skipped, the first because its %s", read.bad, read.why)

    def store(self, now: datetime) -> bool:
        """Store what was taken; returns False where the database is unavailable: the next call stores it."""
        try:
            while self._has_more():
                try:
                    self._store(now)
                except (DataError, OverflowError) as error:  # which would be the same with every try
                    RECORDS.labels("dropped").inc(sum(sums.requests for sums in self._batch.sums.values()))
                    logger.error("usage that the database cannot hold is dropped: %s", error)
                self._batch = _Batch(self._batch.number, {})
        except Error as error:  # another collector's new hour, too
            logger.warning("usage cannot be stored now and is kept: %s", error)
            return False
        STORED_AT.set(now.timestamp())
        return True

    def _has_more(self) -> bool:
        """Return whether there is a batch; one that may have been stored stays what it is."""
        if not self._batch.sums:
            with self._lock:
                sums, self._pending = self._pending, {}
            self._batch = _Batch(self._batch.number + 1, sums)
        return bool(self._batch.sums)

    @transaction.atomic
    def _store(self, now: datetime) -> None:
        batch = self._batch
        row, _ = Collector.objects.get_or_create(name=self._name, defaults={"stored_at": now})
        if row.batch >= batch.number:
            return
        namespaces = sorted({group.namespace for group in batch.sums})
        services = frozenset(each for found in hooks.services(namespaces) for each in found)
        sums, others = by_service(batch.sums, services)
        hours_add(sums)
        Collector.objects.filter(name=self._name).update(batch=batch.number, stored_at=now)
        transaction.on_commit(lambda: RECORDS.labels("no_service").inc(others))
