"""Failure details from pods' events and logs, read only for pods that are not well.

Each pass is bounded in pods and seconds, and details of a known failure are not read again at once. Where the API
server does not answer in time or refuses, the failure stays as the status reports it.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import FairleadError
from integrations.clusters.base import Failure, ObservedReplica, ReplicaPhase
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.observe.failures import (
    env_of,
    failure_by_events,
    is_slow,
    log_of,
    with_events,
    with_log,
)

log = logging.getLogger(__name__)
Json = Mapping[str, Any]

_MOST_PODS = 3
_BUDGET_S = 2.0
_KEPT_S = 15.0
_EVENTS = 50
_LOG_LINES, _LOG_BYTES = 30, 64 << 10


@dataclass
class Diagnosis:
    """Reads failure details and caches them for a while, by pod."""

    api: Api
    clock: Callable[[], float] = time.time
    timer: Callable[[], float] = time.monotonic
    _known: dict[str, tuple[tuple[object, ...], float, Failure | None]] = field(default_factory=dict)

    def explain(self, found: Iterable[tuple[Json, ObservedReplica]]) -> dict[str, Failure]:
        """Return, by pod, failures of pods that are not well, with their events and the ends of their logs.

        Pods that failed last come first; those beyond the limits follow in the next pass.
        """
        now = self.clock()
        unwell = [(pod, replica) for pod, replica in found if _is_unwell(pod, replica, now)]
        self._forget(now)
        newest_first = sorted(unwell, key=lambda each: -_at(each[1]))
        ends_at, reads = self.timer() + _BUDGET_S, 0
        explained = {}
        for pod, replica in newest_first:
            uid, key = pod["metadata"]["uid"], _key(replica)
            known = self._known.get(uid)
            if known is None or known[0] != key:
                if reads == _MOST_PODS or self.timer() >= ends_at:
                    continue
                reads += 1
                known = self._known[uid] = (key, now, self._read(pod, replica.failure, ends_at))
            if known[2] is not None:
                explained[replica.name] = known[2]
        return explained

    def _read(self, pod: Json, failure: Failure | None, ends_at: float) -> Failure | None:
        metadata, env = pod["metadata"], env_of(pod)
        namespace, name = metadata["namespace"], metadata["name"]
        about = {"involvedObject.name": name, "involvedObject.uid": metadata["uid"]}
        try:
            events = self.api.find(resource_types.EVENT, namespace, about, most=_EVENTS, timeout_s=self._left(ends_at))
            if failure is None:
                return failure_by_events(pod, events, env)
            failure = with_events(failure, events, env)
            of = log_of(pod, failure)
            if of is None or self.timer() >= ends_at:
                return failure
            said = self.api.log(
                namespace,
                name,
                of.container,
                previous=of.previous,
                lines=_LOG_LINES,
                most_bytes=_LOG_BYTES,
                timeout_s=self._left(ends_at),
            )
            return with_log(failure, said, env)
        except FairleadError as error:
            log.info("what is behind the failure of pod %s/%s cannot be read now: %s", namespace, name, error.message)
            return failure

    def _left(self, ends_at: float) -> float:
        return max(0.1, ends_at - self.timer())

    def _forget(self, now: float) -> None:
        self._known = {uid: known for uid, known in self._known.items() if now - known[1] < _KEPT_S}


def _is_unwell(pod: Json, replica: ObservedReplica, now: float) -> bool:
    if replica.phase in (ReplicaPhase.READY, ReplicaPhase.DRAINING):
        return False
    return replica.failure is not None or is_slow(pod, now)


def _at(replica: ObservedReplica) -> float:
    return 0.0 if replica.failure is None else replica.failure.at


def _key(replica: ObservedReplica) -> tuple[object, ...]:
    failure = replica.failure
    return () if failure is None else (failure.reason, failure.at, failure.container)
