"""Concurrency limit of each caller: counts the unanswered requests of callers, over all ports of a process.

The gateway sends the limit with each request, since it changes with the number of replicas; a request without one is
neither counted nor refused. Only callers with an unanswered request take memory. Runs on the event loop.
"""

from collections.abc import Mapping

from serving_runtime.common.errors import ErrorKind, FailureReason, ServingError

HEADER = b"fairlead-caller-limit"
"""Header name in lower case: how many requests of its caller may be unanswered in this replica, itself included."""

_MOST_DIGITS = 6


class TooManyRequests(ServingError):  # noqa: N818 - as the others in errors.py
    """As many requests of the caller are unanswered as its limit allows."""

    kind = ErrorKind.TOO_MANY_REQUESTS
    reason = FailureReason.OTHER  # the caller is to blame, not the revision
    retry_after_s = 1


def sent(headers: Mapping[bytes, bytes]) -> int:
    """Return the limit in a request's headers, names in lower case; 0, which is none, where no valid one is there."""
    value = headers.get(HEADER)
    return int(value) if value is not None and value.isdigit() and len(value) <= _MOST_DIGITS else 0


class UnansweredRequests:
    """How many requests of each caller are unanswered, of those with a limit."""

    __slots__ = ("_counts",)

    def __init__(self) -> None:
        self._counts: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Return the number of callers with an unanswered request."""
        return len(self._counts)

    def enter(self, caller: bytes, limit: int) -> None:
        """Count one more request of a caller, until `leave`; raises TooManyRequests where there are `limit` already."""
        count = self._counts.get(caller, 0)
        if count >= limit:
            raise TooManyRequests(
                f"too many requests at once: {count} of this caller are unanswered in this replica, and its share of "
                f"spec.limits.perCaller.concurrentRequests is {limit}; wait for an answer, then try again"
            )
        self._counts[caller] = count + 1

    def leave(self, caller: bytes) -> None:
        """Count one request less of a caller, who has one."""
        count = self._counts[caller] - 1
        if count:
            self._counts[caller] = count
        else:
            del self._counts[caller]
