"""Scale to zero: a quiet revision sleeps, and the first request wakes it. Pure.

                 one replica, quiet for `quiet_of`
    awake -----------------------------------------> asleep
      ^    its cluster woke it, or a rollout began      |
      '-------------------------------------------------'

Quiet is a time in which no request came and none was in flight, by the counters of its replicas. Only a stable revision
sleeps, and no service sleeps during a rollout. While it is asleep the gateway holds its requests.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from integrations.clusters.base import Behavior, Sample

QUIET = timedelta(minutes=10)
SHORTEST_QUIET = timedelta(seconds=10)
"""Counters are read every few seconds."""


@dataclass(frozen=True, slots=True)
class Sleep:
    """The sleep of a revision. Times are Unix seconds.

    Attributes:
        quiet_since: since when no request came; None while its counters are unknown, or while it is asleep.
        counted: when each replica started, and its requests, as they were read last.
        slept_at: when it fell asleep last; None where it never did.
        woken_at: when it was woken from that sleep; None while it is asleep.
        slept_s: how long it slept before that.
        start_s: how long its last replica that started took until it was ready; None while unknown.
    """

    quiet_since: float | None = None
    counted: Mapping[str, tuple[float, int]] = field(default_factory=dict)
    slept_at: float | None = None
    woken_at: float | None = None
    slept_s: float = 0.0
    start_s: float | None = None

    @property
    def is_asleep(self) -> bool:
        """Return whether it is asleep."""
        return self.slept_at is not None and self.woken_at is None

    def total_s(self, now: datetime) -> float:
        """Return how long it has slept in all, in seconds."""
        if self.slept_at is None:
            return 0.0
        until = now.timestamp() if self.woken_at is None else self.woken_at
        return self.slept_s + max(0.0, until - self.slept_at)


def quiet_of(behavior: Behavior) -> timedelta:
    """Return how long a revision must have been quiet before it sleeps."""
    said = behavior.down.window_s
    return QUIET if said is None else max(SHORTEST_QUIET, timedelta(seconds=said))


def watched(sleep: Sleep, samples: Iterable[Sample], revision: str, now: datetime) -> Sleep:
    """Return the sleep after the counters of a revision's replicas were read."""
    its = [each for each in samples if each.revision == revision and each.in_flight is not None]
    counted = {each.source: (each.started_at, each.requests) for each in its}
    is_quiet = bool(its) and counted == sleep.counted and not any(each.in_flight for each in its)
    since = sleep.quiet_since if is_quiet else None
    if since is None and its:
        since = now.timestamp()
    return replace(sleep, counted=counted, quiet_since=since)


def may_sleep(sleep: Sleep, quiet: timedelta, now: datetime) -> bool:
    """Return whether a revision with one replica has been quiet for long enough."""
    return sleep.quiet_since is not None and now.timestamp() - sleep.quiet_since >= quiet.total_seconds()


def asleep(sleep: Sleep, now: datetime) -> Sleep:
    """Return the sleep of a revision that falls asleep."""
    return replace(
        sleep, slept_s=sleep.total_s(now), slept_at=now.timestamp(), woken_at=None, quiet_since=None, counted={}
    )


def woken(sleep: Sleep, now: datetime, at: float | None = None) -> Sleep:
    """Return the sleep of a revision that wakes, at a time that its cluster reports."""
    return replace(sleep, woken_at=now.timestamp() if at is None else at)


def sleep_json(sleep: Sleep) -> dict[str, Any]:
    """Return the sleep as JSON."""
    return asdict(replace(sleep, counted=dict(sleep.counted)))


def stored_sleep(load: Mapping[str, Any]) -> Sleep:
    """Return the sleep from what is stored of a revision's load; unknown fields are ignored."""
    value = load.get("sleep") or {}
    known = {name: value[name] for name in Sleep.__dataclass_fields__ if name in value}
    counted = {source: (float(at), int(number)) for source, (at, number) in known.pop("counted", {}).items()}
    return Sleep(**known, counted=counted)
