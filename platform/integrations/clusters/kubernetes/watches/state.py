"""Watch state machine for the objects of one kind, of one namespace or of all. Pure.

    must list --listed--> streams --ended, failed--> streams again from where it was
        ^                    |
        '---- 410 Gone, lost, or the time of a resync has come

A watch that has been away for some seconds is lost: what it reported may be old, and is not relied on.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

RESYNC_S = 3600.0
"""Interval of full lists, in addition to the stream."""
LOST_AFTER_S = 5.0
"""How long a watch may be away before what it reported is not relied on."""
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_GONE = 410

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Watch:
    """State of one watch.

    Attributes:
        resource_version: from where to stream; empty where everything has to be listed first.
        failures: consecutive failures.
        problem: why it failed the last time; empty where it did not.
        listed_at: monotonic seconds of the last list.
        failing_since: monotonic seconds of the first of the consecutive failures; None without one.
    """

    resource_version: str = ""
    failures: int = 0
    problem: str = ""
    listed_at: float = 0.0
    failing_since: float | None = None

    def must_list(self, now: float) -> bool:
        """Return whether everything has to be listed before it can stream: after a while away too.

        A server that was restored from a backup does not say so: its versions begin again below what is known.
        """
        return not self.resource_version or now - self.listed_at >= RESYNC_S or self.is_lost(now)

    def is_lost(self, now: float) -> bool:
        """Return whether it has been away for too long."""
        return self.failing_since is not None and now - self.failing_since >= LOST_AFTER_S


def listed(watch: Watch, resource_version: str, now: float) -> Watch:
    """Return the watch after a list."""
    # Failures stay: a stream that ends each time it has begun is requested less and less often.
    return replace(watch, resource_version=resource_version, listed_at=now, failing_since=None)


def opened(watch: Watch) -> Watch:
    """Return the watch when its stream has begun; failures stay until it is of use, since it may be refused at once."""
    return replace(watch, problem="", failing_since=None)


def heard(watch: Watch, event: Json, now: float) -> Watch:
    """Return the watch after one event of its stream."""
    item = event["object"]
    if event.get("type") == "ERROR":
        return failed(watch, str(item.get("message", "it does not say why")), now, gone=item.get("code") == _GONE)
    return replace(ended(watch), resource_version=str(item["metadata"]["resourceVersion"]))


def ended(watch: Watch) -> Watch:
    """Return the watch after its stream ended normally, as the API server ends each after a while."""
    return replace(watch, failures=0, problem="", failing_since=None)


def failed(watch: Watch, problem: str, now: float, *, gone: bool = False) -> Watch:
    """Return the watch after a failure.

    Args:
        gone: the API server no longer has the events in between (410), so that a list is needed.
    """
    return replace(
        watch,
        resource_version="" if gone else watch.resource_version,
        failures=watch.failures + 1,
        problem=problem,
        failing_since=now if watch.failing_since is None else watch.failing_since,
    )


def wait_s(watch: Watch, chance: float) -> float:
    """Return the exponential back-off before the next try: none at first, then up to twice as long each time.

    Args:
        chance: random from 0 to 1, so that many watches do not come back all at once.
    """
    if not watch.failures:
        return 0.0
    longest = min(_FIRST_WAIT_S * 2.0 ** min(watch.failures - 1, 16), _LONGEST_WAIT_S)
    return longest * (0.5 + chance / 2)
