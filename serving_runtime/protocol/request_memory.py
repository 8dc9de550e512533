"""Request memory limit: bounds what arrives, is inflated, decoded or queued, over all ports of a process.

Copies out of clients' shared memory are counted by `Copies`, which lowers the limits by them.

Receivers of content add its size to `held_bytes` and take it off when the request is answered or dropped; all of them
run on the event loop. Large requests, which arrive in pieces, are refused a little before small ones are: clients that
send much, slowly, do not shut out those that send little.
"""

import asyncio
import sys
import threading

from serving_runtime.common.errors import ErrorKind, FailureReason, ServingError
from serving_runtime.engine.memory.process_memory import give_back

SHARE = 0.1
"""Share of the process's memory, without a configured limit; models may take 0.8."""

LARGEST_AT_LEAST = 4
"""The limit has room for so many requests of the largest size in any case."""

_KEPT_FOR_SMALL = 8
"""One part in so many of the limit is for requests that arrive whole."""

LARGE_REQUEST_BYTES = 64 * 1024
"""Larger requests arrive in pieces; they are counted as they arrive, and refused before small ones are."""

_MOST_DROPPED_BYTES = 16 * 1024 * 1024
"""Bytes of dropped requests after which free memory returns to the operating system."""

JSON_COST = 3
"""Cost of a large JSON body, in times its size: its text, and its tensors."""


class TooMuchUnfinished(ServingError):  # noqa: N818 - as the others in errors.py
    """Unfinished requests hold all the memory that they may."""

    kind = ErrorKind.UNAVAILABLE
    reason = FailureReason.REJECTED
    retry_after_s = 1


class RequestMemory:
    """The bytes of unfinished requests, and their limit.

    Attributes:
        held_bytes: added and subtracted by the holders.
        limit_bytes: of all requests, beside the copies out of shared memory.
        arriving_limit_bytes: limit of all requests up to which large ones may add to them.
        copies: those out of clients' shared memory.
    """

    __slots__ = ("_dropped_bytes", "_giving_back", "arriving_limit_bytes", "copies", "held_bytes", "limit_bytes")

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = limit_bytes or sys.maxsize
        self.arriving_limit_bytes = self.limit_bytes - self.limit_bytes // _KEPT_FOR_SMALL
        self.copies = Copies(self)
        self.held_bytes = self._dropped_bytes = 0
        self._giving_back = False

    def drop(self, size_bytes: int) -> None:
        """Subtract bytes that will not become a request; the C library must not keep all of them."""
        self.held_bytes -= size_bytes
        self._dropped_bytes += size_bytes
        if self._dropped_bytes > _MOST_DROPPED_BYTES and not self._giving_back:
            self._dropped_bytes, self._giving_back = 0, True
            given = asyncio.get_running_loop().run_in_executor(None, give_back)
            given.add_done_callback(self._on_given_back)

    def _on_given_back(self, _given: object) -> None:
        self._giving_back = False

    def check(self, own_bytes: int) -> None:
        """Raise TooMuchUnfinished above the limit; a request is never refused for its own size alone.

        Args:
            own_bytes: held by the calling request itself.
        """
        if self.held_bytes > self.limit_bytes and self.held_bytes > own_bytes:
            raise self.refusal()

    def lacks(self, size_bytes: int) -> bool:
        """Return whether a large request of this size, of which nothing is held yet, has no room now."""
        return self.held_bytes > 0 and self.held_bytes + size_bytes > self.arriving_limit_bytes

    def json_cost(self, size_bytes: int) -> int:
        """Return the bytes counted for a large JSON body of this size, once it has arrived.

        A single one may exceed the limit, but not the part for small requests.
        """
        return max(size_bytes, min(size_bytes * JSON_COST, self.arriving_limit_bytes))

    def refusal(self) -> TooMuchUnfinished:
        copied_bytes = self.copies.held_bytes
        return TooMuchUnfinished(
            f"unfinished requests hold {self.held_bytes + copied_bytes} bytes, "
            f"and {self.limit_bytes + copied_bytes} are allowed "
            "(--max-request-memory-bytes); try again soon"
        )


class Copies:
    """Copies out of clients' shared memory, until the tensors are freed; in any thread.

    The limit of large requests applies. A single request is not refused for its size, and leaves the part for small
    requests to them.

    Attributes:
        held_bytes: of all copies.
    """

    __slots__ = ("_lock", "_memory", "held_bytes")

    def __init__(self, memory: RequestMemory) -> None:
        self._memory = memory
        self._lock = threading.RLock()  # the garbage collector may free tensors in a thread that holds it
        self.held_bytes = 0

    def add(self, size_bytes: int, before_bytes: int) -> int:
        """Count a copy before it is made, and return how much to remove for it; raises TooMuchUnfinished.

        Args:
            before_bytes: bytes that the same request has copied already.
        """
        with self._lock:
            room_bytes = self._memory.arriving_limit_bytes - self._memory.held_bytes
            if size_bytes > room_bytes:
                alone = self.held_bytes <= before_bytes and self._memory.held_bytes <= LARGE_REQUEST_BYTES
                if not alone:
                    raise self._memory.refusal()
                size_bytes = max(0, room_bytes)
            self._count(size_bytes)
        return size_bytes

    def remove(self, size_bytes: int) -> None:
        with self._lock:
            self._count(-size_bytes)

    def _count(self, size_bytes: int) -> None:
        self.held_bytes += size_bytes
        self._memory.limit_bytes -= size_bytes
        self._memory.arriving_limit_bytes -= size_bytes


def default_limit_bytes(memory_bytes: int, largest_request_bytes: int, processes: int) -> int:
    """Return the limit of one process without a configured one."""
    return max(LARGEST_AT_LEAST * largest_request_bytes, int(memory_bytes * SHARE) // processes)
