"""Token buckets, one per key: how many requests in a time. Pure: the caller says what time it is.

A bucket fills by `per_minute` and holds a sixth of that, at least ten, so that short bursts pass. The number of buckets
is bounded; beyond it the one that was used longest ago is forgotten.
"""

import math
import threading
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass

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


class TokenBuckets:
    """Buckets by key; safe to use from several threads."""

    def __init__(self, most_keys: int = MOST_KEYS) -> None:
        self._most_keys = most_keys
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._lock = threading.Lock()

    def take(self, key: Hashable, *, per_minute: int, now: float, count: int = 1) -> Verdict:
        """Take `count` tokens if they are there, and return whether they were; a count of 0 only looks.

        Args:
            per_minute: at least 1.
            now: of a clock that never goes back, in seconds.
        """
        limit, rate = max(_LEAST_BURST, per_minute // 6), per_minute / 60
        with self._lock:
            level, at = self._buckets.get(key, (float(limit), now))
            level = min(float(limit), level + max(0.0, now - at) * rate)
            allowed = level >= max(1, count)
            if allowed:
                level -= count
            self._buckets[key] = (level, now)
            self._buckets.move_to_end(key)
            while len(self._buckets) > self._most_keys:
                self._buckets.popitem(last=False)
        wait_s = 0 if level >= 1 else math.ceil((1 - level) / rate)
        return Verdict(allowed, limit, int(level), wait_s, math.ceil((limit - level) / rate))

    def clear(self) -> None:
        """Forget all buckets."""
        with self._lock:
            self._buckets.clear()

    def __len__(self) -> int:
        return len(self._buckets)
