"""Slots of a pool's fetches: bounded together and for each origin, which take turns; and their stall detection.

    queued -- a slot, its origin's turn --> running: opened .. piece .. piece .. closed (unpacking, checking)
       |                                       `-- nothing for `stall_s` while it receives --> stalled
       `-- its origin's running fetches all stall --> stalled

So an origin that is slow or hangs takes half of the slots at most, and its fetches fail in time.
"""

import asyncio
import os
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from serving_runtime.artifacts.remotes import Opened, Remote
from serving_runtime.common.errors import ModelError
from serving_runtime.engine.catalog.repository_location import Bucket, parse

now = time.monotonic

_MOUNTS = Path("/proc/self/mounts")


class StalledError(ModelError):
    """An origin sends nothing."""


class FetchSlots:
    """Slots of all fetches. Lives on one event loop.

    Attributes:
        per_origin: slots that one origin may use: half of all, and at least one.
    """

    def __init__(self, total: int) -> None:
        self.per_origin = max(1, total // 2)
        self._free = total
        self._running: dict[str, set[Transfer]] = {}
        self._queues: OrderedDict[str, deque[tuple[Transfer, asyncio.Future[None]]]] = OrderedDict()  # next one first

    async def take(self, transfer: "Transfer") -> None:
        """Return when a fetch has a slot, to be given back by `release`."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queues.setdefault(transfer.origin, deque()).append((transfer, turn))
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(transfer)
            raise

    def release(self, transfer: "Transfer") -> None:
        running = self._running[transfer.origin]
        running.discard(transfer)
        if not running:
            del self._running[transfer.origin]
        self._free += 1
        self._grant()

    def runs(self, transfer: "Transfer") -> bool:
        """Return whether a fetch has a slot."""
        return transfer in self._running.get(transfer.origin, ())

    def stalled_s(self, transfer: "Transfer") -> float:
        """Return for how long a fetch got nothing; where it is queued, all fetches that its origin's slots are with."""
        running = self._running.get(transfer.origin, set())
        if transfer in running:
            return transfer.stalled_s()
        return min((each.stalled_s() for each in running), default=0.0)

    def _grant(self) -> None:
        while self._free and (origin := self._next()) is not None:
            queue = self._queues[origin]
            transfer, turn = queue.popleft()
            if queue:
                self._queues.move_to_end(origin)
            else:
                del self._queues[origin]
            if not turn.done():
                self._free -= 1
                self._running.setdefault(origin, set()).add(transfer)
                turn.set_result(None)

    def _next(self) -> str | None:
        free = (origin for origin in self._queues if len(self._running.get(origin, ())) < self.per_origin)
        return next(free, None)


class Transfer:
    """Progress of one fetch: its thread calls `watched` and what that returns, the event loop reads.

    Attributes:
        since: monotonic seconds of the last byte or attempt; None while nothing is to be received.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.since: float | None = None
        self._given_up = ""

    def stalled_s(self) -> float:
        """Return for how long nothing was received that is awaited."""
        since = self.since
        return now() - since if since is not None else 0.0

    def give_up(self, why: str) -> None:
        """Let the thread end at its next piece or attempt, without another try."""
        self._given_up = why

    def watched(self, remotes: Callable[[], Sequence[Remote]]) -> Sequence[Remote]:
        """Return the remotes, whose transfers are watched."""
        with self._receiving():
            return [_Watched(remote, self) for remote in remotes()]

    @contextmanager
    def _receiving(self) -> Iterator[None]:
        self.beat()
        try:
            yield
        finally:
            self.since = None

    def beat(self) -> None:
        """Count progress; raises StalledError where the fetch was given up."""
        if self._given_up:
            raise StalledError(self._given_up)
        self.since = now()


@dataclass(frozen=True, slots=True)
class _Watched:
    """A remote that counts its progress."""

    remote: Remote
    transfer: Transfer

    def __str__(self) -> str:
        return str(self.remote)

    @property
    def path(self) -> str:
        return self.remote.path

    @contextmanager
    def open(self, first: int) -> Iterator[Opened]:
        """Open it at a byte offset; raises what the remote does."""
        with self.transfer._receiving(), self.remote.open(first) as opened:
            yield Opened(opened.first, opened.size_bytes, opened.filename, self._counted(opened.pieces))

    def _counted(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        self.transfer.beat()
        for piece in pieces:
            self.transfer.beat()
            yield piece


def origin_of(uri: str, mounts: Path = _MOUNTS) -> str:
    """Return what fetches share the slots of: a host, a bucket, or the file system of a local path."""
    try:
        parts = urlsplit(uri)
        if parts.scheme in ("http", "https"):
            return parts.netloc.rpartition("@")[2].lower()
        place = parse(uri)
    except (ValueError, ModelError):
        return ""  # its fetch says what is wrong
    if isinstance(place, Bucket):
        return place.endpoint.partition("://")[2] or f"{place.scheme}://{place.path.partition('/')[0]}"
    return _file_system(uri, mounts)


def _file_system(path: str, mounts: Path) -> str:
    """Return the mount point of a path, without asking the file system, which may hang."""
    try:
        text = mounts.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "/"
    normal = PurePosixPath(os.path.normpath(path))
    points = (line.split(" ")[1].replace("\\040", " ") for line in text.splitlines() if line.count(" ") > 1)
    return max((point for point in points if normal.is_relative_to(point)), key=len, default="/")
