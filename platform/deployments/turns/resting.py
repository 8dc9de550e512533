"""Settled services whose objects are as their last turn left them: they need a turn now and then, and samples between.

    requests      --> a sample of the traffic each minute, which reads and writes nothing else of the service
    none, or late --> a turn every 25 minutes, which finds what no watch reports

Turns of those without requests come at a limited rate, of all of them together. For several threads at once.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from common.errors import Unavailable
from deployments.models import InferenceService, Revision, TrafficPoint
from deployments.reconcile.participants.traffic import Live, Looked, store
from deployments.reconcile.schedule import SettledRow
from deployments.reconcile.turn import Metrics
from integrations.clusters.base import ClusterDriver, Sample

_SAMPLE_S = 60.0
_TURN_S = 1500.0
_IDLE_AFTER_S = 300.0
_IDLE_PACE_S, _IDLE_AT_ONCE = 0.25, 4
"""From one turn of an idle service to the next, of all of them: what they cost does not grow with their number."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """How the last turn left a service.

    Attributes:
        changes: the number of its changes.
        mark: the cluster's mark of the service.
        live: the service as it accepts requests; None where it does not.
        turned_at, sampled_at: monotonic seconds of its last turn, and of its last sample.
        requests_at: when it last had requests, as of that sample.
    """

    namespace: str
    name: str
    changes: int
    mark: object
    live: Live | None
    turned_at: float
    sampled_at: float
    requests_at: float

    @property
    def is_idle(self) -> bool:
        """Whether it had no requests for some time when it was sampled."""
        return self.sampled_at - self.requests_at >= _IDLE_AFTER_S

    @property
    def turn_at(self) -> float:
        """Monotonic seconds of its next turn."""
        return self.turned_at + _TURN_S

    @property
    def until(self) -> float:
        """Monotonic seconds until which nothing is due."""
        return self.turn_at if self.is_idle else min(self.turn_at, self.sampled_at + _SAMPLE_S)


class Resting:
    """Remembers how the last turn left each settled service."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, _Rest] = {}
        self._idle_from = 0.0

    def split(
        self, rows: Iterable[SettledRow], drivers: Mapping[int, ClusterDriver], now: float
    ) -> tuple[list[int], list[SettledRow]]:
        """Return the ids of those that rest, and those that are to have a turn. `now` is monotonic seconds."""
        rest, stir = [], []
        for row in rows:
            known = self._known.get(row.pk)
            if known is not None and known.changes == row.changes:
                mark = drivers[row.cluster_id].mark(row.namespace, row.name)
                if mark is not None and mark == known.mark and not self._is_sampled(known, now):
                    rest.append(row.pk)
                    continue
            stir.append(row)
        return rest, stir

    def _is_sampled(self, known: _Rest, now: float) -> bool:
        """Return whether a service whose objects are as they were has a turn for its traffic."""
        if known.until > now or (known.is_idle and self._idle_from >= now):
            return False
        if known.is_idle:
            self._idle_from = max(self._idle_from, now - _IDLE_PACE_S * _IDLE_AT_ONCE) + _IDLE_PACE_S
        return True

    def turned_to(self, service_id: int, driver: ClusterDriver, now: float) -> None:
        """Note the end of a turn to a service. `now` is monotonic seconds."""
        columns = ("namespace", "name", "changes", "settled", "ticked_at", "live_at")
        row = InferenceService.objects.only(*columns).filter(pk=service_id).first()
        if row is None or row.settled != row.changes or row.ticked_at is None:
            with self._lock:
                self._known.pop(service_id, None)
            return
        lately = Q(service=service_id, at__gte=row.ticked_at - timedelta(seconds=_IDLE_AFTER_S), requests__gt=0)
        has_requests = TrafficPoint.objects.filter(lately).exists()
        live = None
        if row.live_at is not None:
            running = Revision.objects.filter(service=service_id, stopped_at=None).values_list("name", "pk")
            live = Live(service_id, row.live_at, dict(running))
        mark, requests_at = driver.mark(row.namespace, row.name), now if has_requests else float("-inf")
        with self._lock:
            self._known[service_id] = _Rest(row.namespace, row.name, row.changes, mark, live, now, now, requests_at)

    def sample(self, service_id: int, driver: ClusterDriver, metrics: Metrics, now: float) -> bool:
        """Store the traffic of a service that rests; False where it needs a turn. `now` is monotonic seconds."""
        known = self._known.get(service_id)
        if known is None or known.live is None or known.mark is None or known.turn_at <= now:
            return False
        if driver.mark(known.namespace, known.name) != known.mark:
            return False
        requests = _stored(known, known.live, driver, metrics)
        with self._lock:
            if requests is None:
                self._known.pop(service_id, None)
                return False
            requests_at = now if requests else known.requests_at
            self._known[service_id] = replace(known, requests_at=requests_at, sampled_at=now)
        return True


def _stored(known: _Rest, live: Live, driver: ClusterDriver, metrics: Metrics) -> int | None:
    """Store a sample, and return its requests; None where the service is not as its last turn left it any more."""
    try:
        seen = driver.observe(known.namespace, known.name)
    except Unavailable:
        return None
    samples: Sequence[Sample] = ()
    with suppress(Unavailable):  # then the next sample has the difference
        samples = metrics(seen)
    with transaction.atomic():
        now = timezone.now()
        as_before = InferenceService.objects.filter(pk=live.service_id, changes=known.changes, settled=known.changes)
        if not as_before.update(traffic_at=now, seen_at=now, ticked_at=now):
            return None
        return store(live, Looked(seen, samples), now=now) if samples else 0
