"""Permanent refusals, which no wait resolves: a command that waits for a service ends with them."""

import time
from collections.abc import Callable

from fairlead_cli.client import Json
from fairlead_cli.errors import EndedBadly

_LOADS = 3
"""Failed loads of one replica that count as permanent, as for a rollout (`CanaryCrashLooping`)."""
_REFUSED_S = 10.0
"""Time after which a cluster's refusal is not due to a change in progress."""


class Refusals:
    """Tracks refusals while a command waits for one service.

    Attributes:
        count_loads: repeated load failures of a model count as refusal; not where it is just being restarted.
    """

    def __init__(self, *, count_loads: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self._count_loads = count_loads
        self._clock = clock
        self._refused_since: float | None = None

    def check(self, service: Json) -> None:
        """Raise EndedBadly where what is waited for cannot come by itself."""
        whose = f"service {service['namespace']}/{service['name']}"
        for revision in service["revisions"]:
            if revision.get("role") == "stable" and self._cannot_start(revision):
                why = revision["last_failure"]["message"]
                raise EndedBadly(f"{whose} cannot start {revision['name']}, and waiting does not help: {why}")
        waits = service.get("waits") or {}
        if waits.get("condition") != "ClusterRefuses":
            self._refused_since = None
            return
        self._refused_since = self._clock() if self._refused_since is None else self._refused_since
        if self._clock() - self._refused_since >= _REFUSED_S:
            raise EndedBadly(f"{whose} does not come by waiting: {waits['evidence']}")

    def _cannot_start(self, revision: Json) -> bool:
        failure = revision.get("last_failure")
        if not revision.get("is_failing") or not failure or revision["replicas_ready"]:
            return False
        loads = revision["restarts"] // max(1, revision["replicas_wanted"])
        is_looping = self._count_loads and failure["reason"] == "ModelLoadFailed" and loads >= _LOADS
        return bool(failure.get("is_final")) or is_looping
