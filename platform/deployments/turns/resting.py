"""Settled services whose objects are as their last turn left them: they need a turn only for a sample of their traffic.

One that gets no requests is sampled seldom, and all of those together at a limited rate. For several threads at once.
"""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta

from deployments.models import InferenceService, TrafficPoint
from deployments.reconcile.schedule import SettledRow
from integrations.clusters.base import ClusterDriver

_BUSY_S = 60.0
_IDLE_S = 1500.0
_IDLE_AFTER = timedelta(minutes=5)
_IDLE_PACE_S, _IDLE_AT_ONCE = 0.25, 4
"""From one sample of an idle service to the next, of all of them: what they cost does not grow with their number."""


@dataclass(frozen=True, slots=True)
class _Rest:
    """How the last turn left a service: its changes, its cluster's mark of it, and until when that is enough."""

    changes: int
    mark: object
    until: float
    is_idle: bool


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
        row = InferenceService.objects.filter(pk=service_id).values(
            "namespace", "name", "changes", "settled", "ticked_at"
        )
        found = row.first()
        if found is None or found["settled"] != found["changes"] or found["ticked_at"] is None:
            with self._lock:
                self._known.pop(service_id, None)
            return
        since = found["ticked_at"] - _IDLE_AFTER
        is_busy = TrafficPoint.objects.filter(service=service_id, at__gte=since, requests__gt=0).exists()
        mark = driver.mark(found["namespace"], found["name"])
        with self._lock:
            until = now + (_BUSY_S if is_busy else _IDLE_S)
            self._known[service_id] = _Rest(found["changes"], mark, until, is_idle=not is_busy)
