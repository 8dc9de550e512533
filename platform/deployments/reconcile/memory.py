"""Memory of services between the turns of one process, so that a turn need not read again what it left as it is.

Every change of a service and its related rows raises `changes`, and every turn writes `ticked_at`: where both are as
the last turn of this process left them, so are the rows. What other rows say, such as the cluster's, is read again;
those of model versions are kept for a minute.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from deployments.models import InferenceService
from deployments.reconcile.service_change import Change

_MOST = 2_000
_FOR_S = 60.0


@dataclass(frozen=True, slots=True)
class Remembered:
    """A service as a turn left it.

    Attributes:
        kept: what participants keep for their next turn.
        until: monotonic seconds, after which it is read again.
    """

    change: Change
    kept: dict[Any, Any]
    until: float


def remembered(change: Change, memory: "Memory | None") -> Remembered:
    """Return a service that was read just now."""
    return Remembered(change, {}, 0.0 if memory is None else memory.clock() + _FOR_S)


@dataclass
class Memory:
    """What is remembered of services that move. For several threads at once; one of them has a service at a time.

    Attributes:
        clock: monotonic seconds.
    """

    clock: Callable[[], float]
    _known: OrderedDict[int, Remembered] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def recall(self, service_id: int, *, now: datetime) -> Remembered | None:
        """Return a service as its row and its related rows are, for a turn that begins; None where it must be read."""
        with self._lock:
            known = self._known.pop(service_id, None)
        if known is None or known.until <= self.clock():
            return None
        service = known.change.service
        row = InferenceService.objects.filter(pk=service_id).values_list("changes", "ticked_at").first()
        if row != (service.changes, service.ticked_at):
            return None
        related: Mapping[str, Any] = service._state.fields_cache  # rows that others change
        service._state.fields_cache = {name: each for name, each in related.items() if name == "model_version"}
        return replace(known, change=replace(known.change, now=now, is_changed=False))

    def keep(self, one: Remembered, *, ticked_at: datetime) -> None:
        """Remember how a turn left a service, whose row says that it ended at `ticked_at`."""
        service = one.change.service
        service.ticked_at = ticked_at
        service.__dict__.pop("changed_at", None)  # the database's clock wrote it; it is read when asked for
        with self._lock:
            self._known[service.pk] = one
            while len(self._known) > _MOST:
                self._known.popitem(last=False)

    def has(self, service_id: int) -> bool:
        """Return whether the last turn to a service left it moving, and all that it read as it is."""
        with self._lock:
            return service_id in self._known

    def follows_nothing(self, service_id: int) -> bool:
        """Return whether a service's file named a version by its number when its last turn ended."""
        with self._lock:
            known = self._known.get(service_id)
        if known is None or known.until <= self.clock():
            return False
        service = known.change.service
        model = service.document["spec"]["predictor"].get("model") or {}  # none of a custom predictor
        uri = model.get("storageUri", "")
        return service.awaited_import_id is None and "@" not in uri
