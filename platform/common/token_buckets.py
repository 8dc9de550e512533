"""Token buckets, one per key: how many requests in a time. Pure: the caller says what time it is.

A bucket fills by `per_minute` and holds `burst`: by default a sixth of that, at least ten, so that short bursts pass.
The number of buckets is bounded; beyond it the one that was used longest ago is forgotten.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

MOST_KEYS = 20_000
_LEAST_BURST = 10


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a request is within its limit.

    Attributes:
        limit: requests that a full bucket holds.
        remaining: requests that are left now.
        wait_s: whole seconds until another one is allowed; 0 where one is left.
        reset_s: whole seconds until the bucket is full.
    """

    allowed: bool
    limit: int
    remaining: int
    wait_s: int
    reset_s: int

    @property
    def headers(self) -> dict[str, str]:
        """Return the response headers that say so."""
        found = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return found if self.allowed else {**found, "Retry-After": str(max(1, self.wait_s))}

    @classmethod
    def of(cls, level: float, *, allowed: bool, limit: int, per_minute: int) -> "Verdict":
        """Return the verdict on a bucket that holds `level` of `limit` tokens now."""
        rate = per_minute / 60
        wait_s = 0 if level >= 1 else math.ceil((1 - level) / rate)
        return cls(allowed, limit, int(level), wait_s, math.ceil((limit - level) / rate))


class Buckets(Protocol):
    """Buckets by key, in this process or elsewhere."""

    def take(self, key: Hashable, *, per_minute: int, now: float, count: int = 1, burst: int | None = None) -> Verdict:
        """Take `count` tokens if they are there, and return whether they were; a count of 0 only looks.

        Args:
            per_minute: at least 1.
            now: of a clock that never goes back, in seconds.
            burst: tokens that a full bucket holds; None for `default_burst`.
        """

    def look(self, key: Hashable, *, per_minute: int, now: float) -> Verdict:
        """Return what this process knows of a bucket, without waiting for anything."""


class TokenBuckets:
    """Buckets in memory; safe to use from several threads."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: Hashable, *, per_minute: int, now: float, count: int = 1, burst: int | None = None) -> Verdict:
        """Take `count` tokens if they are there, as `Buckets.take`."""
        limit, rate = burst or default_burst(per_minute), per_minute / 60
        with self._lock:
            level, at = self._buckets.get(key, (float(limit), now))
            level = min(float(limit), level + max(0.0, now - at) * rate)
            allowed = level >= max(1, count)
            if allowed:
                level -= count
            self._put(key, level, now)
        return Verdict.of(level, allowed=allowed, limit=limit, per_minute=per_minute)

    def look(self, key: Hashable, *, per_minute: int, now: float) -> Verdict:
        """Return whether the bucket holds a token, as `Buckets.look`."""
        return self.take(key, per_minute=per_minute, now=now, count=0)

    def put(self, key: Hashable, level: float, now: float) -> None:
        """Set how many tokens a bucket holds, as another count of the same requests has it."""
        with self._lock:
            self._put(key, level, now)

    def _put(self, key: Hashable, level: float, now: float) -> None:
        self._buckets[key] = (level, now)
        self._buckets.move_to_end(key)
        while len(self._buckets) > self._most_keys:
            self._buckets.popitem(last=False)

    def __len__(self) -> int:
        return len(self._buckets)


def default_burst(per_minute: int) -> int:
    """Return how many tokens a full bucket holds."""
    return max(_LEAST_BURST, per_minute // 6)
