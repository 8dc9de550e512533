"""Replicas of services that may sleep: their state, from watches, and the start of the first one.

A Deployment without replicas is asleep only where the driver noted when it went to sleep: one that was stopped stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import DEPLOYMENT, ENDPOINT_SLICE, POD, SECURITY_POLICY
from integrations.clusters.kubernetes.manifests.names import REVISION, SERVICE, SLEPT
from integrations.clusters.kubernetes.observe.drift import WAKER
from integrations.clusters.kubernetes.observe.observation import serving
from integrations.clusters.kubernetes.waker.calls import Call
from integrations.clusters.kubernetes.waker.start_failures import StartFailure, start_failure
from integrations.clusters.kubernetes.watches.cache import Cache

WATCHED = (DEPLOYMENT, ENDPOINT_SLICE, SECURITY_POLICY)
_MOST_KEPT = 4096


@dataclass(frozen=True, slots=True)
class State:
    """State of a revision.

    Attributes:
        may_wait: a replica comes, or a request may start one; else the gateway answers as it can.
        policy: the service's SecurityPolicy; None without one.
    """

    is_ready: bool
    is_asleep: bool
    may_wait: bool
    policy: Mapping[str, Any] | None = None


class Replicas:
    """Reads states from the cache, and writes by the API."""

    def __init__(self, api: Api, cache: Cache) -> None:
        self._api, self._cache = api, cache
        self._known: dict[tuple[str, str, str], tuple[tuple[int, int], State]] = {}

    def state(self, call: Call) -> State | None:
        """Return the state of a call's revision; None while the watches do not have it."""
        mark = self._cache.mark(call.namespace, call.service, WATCHED)
        if mark is None:
            return None
        key = call.namespace, call.service, call.revision
        known = self._known.get(key)
        if known is None or known[0] != mark:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            known = self._known[key] = mark, self._read(call)
        return known[1]

    def start(self, call: Call) -> bool:
        """Give a revision that is asleep one replica, and return True; one that was started meanwhile stays as it is.

        Raises:
            Conflict: it was changed meanwhile.
            NotPermitted, Unavailable: as `Api` raises them.
        """
        found = self._api.fetch(DEPLOYMENT, call.namespace, call.revision)
        if found is None or not _state(call, found, ready=False).is_asleep:
            return False
        self._api.scale(DEPLOYMENT, found["metadata"], 1, manager=WAKER)
        return True

    def failure(self, call: Call, now: float) -> StartFailure | None:
        """Return why a revision that was started has no ready replica, at `now` (Unix seconds); None while unknown.

        Raises:
            NotPermitted: the role is that of an earlier release, which may not read pods.
            Unavailable: as `Api` raises it.
        """
        deployment = self._cache.get(DEPLOYMENT, call.namespace, call.revision)
        pods = self._api.fetch_list(POD, call.namespace, {SERVICE: call.service, REVISION: call.revision})
        return None if deployment is None else start_failure(deployment, pods, now)

    def _read(self, call: Call) -> State:
        found = self._cache.get(DEPLOYMENT, call.namespace, call.revision)
        if found is None:
            return State(is_ready=False, is_asleep=False, may_wait=False)
        slices = self._cache.list(ENDPOINT_SLICE, call.namespace, {SERVICE: call.service})
        policy = self._cache.get(SECURITY_POLICY, call.namespace, call.service)
        return _state(call, found, ready=bool(serving(slices).get(call.revision)), policy=policy)


def _state(call: Call, deployment: Mapping[str, Any], *, ready: bool, policy: Mapping[str, Any] | None = None) -> State:
    metadata = deployment["metadata"]
    is_its = (metadata.get("labels") or {}).get(SERVICE) == call.service and "deletionTimestamp" not in metadata
    may_wait = is_its and bool((metadata.get("annotations") or {}).get(SLEPT))
    has_none = deployment["spec"].get("replicas", 1) == 0
    return State(
        is_ready=ready and is_its and not has_none,
        is_asleep=may_wait and has_none,
        may_wait=may_wait,
        policy=policy,
    )
