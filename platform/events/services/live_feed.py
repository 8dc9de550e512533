"""Live feed for server-sent events: one poller per web process sends each topic's newest value to its subscribers.

One query a period, whatever the number of streams, and only while a stream is open; a value is loaded once for all its
subscribers. A slow subscriber skips values: each value is the whole state.

    join -> poller starts -> marks -> changed topics are loaded -> put into mailboxes -> last one leaves -> poller ends
"""

import asyncio
import contextvars
import logging
import signal
import threading
from collections.abc import AsyncIterator, Callable, Collection, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any, TypeVar

from django.db import close_old_connections

logger = logging.getLogger(__name__)

Value = TypeVar("Value")
NOTHING = object()
"""Returned by a mailbox without a new value: it was closed, or its subscriber's access has to be checked again."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Change markers of rows: a different mark means a different value.

    Attributes:
        everything: one number for all rows together; reading it costs the same for any number of rows.
        of: by id, of those of the requested rows that exist.
    """

    everything: int
    of: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Topic:
    """Topic of a stream; topics with the same key are equal.

    Attributes:
        row: the id of its row; None for a topic of all rows.
        mark: derives the topic's mark from the marks read; a different mark means a different value.
        load: reads the value, in a thread.
    """

    key: Hashable
    mark: Callable[[Marks], Hashable] = field(compare=False)
    load: Callable[[], Any] = field(compare=False)
    row: int | None = None

    @classmethod
    def of_row(cls, row: int, load: Callable[[], Any], *, key: Hashable) -> "Topic":
        """Return a topic that changes with one row alone."""
        return cls(key, lambda marks: marks.of.get(row), load, row)


class Mailbox:
    """Mailbox of size one: keeps the newest value that the subscriber has not taken yet.

    Attributes:
        closed: no more values will come.
        doubted: permissions have changed; the subscriber checks its own, and clears the flag.
    """

    def __init__(self) -> None:
        self._value: Any = NOTHING
        self._full = asyncio.Event()
        self.closed = False
        self.doubted = False

    def put(self, value: Any) -> None:
        """Replace the value."""
        self._value = value
        self._full.set()

    def close(self) -> None:
        """Wake the subscriber for the last time."""
        self.closed = True
        self._full.set()

    def doubt(self) -> None:
        """Wake the subscriber to check its permissions."""
        self.doubted = True
        self._full.set()

    async def take(self) -> Any:
        """Return the next value; NOTHING where the subscriber should check `closed` and `doubted` instead."""
        await self._full.wait()
        self._full.clear()
        value, self._value = self._value, NOTHING
        return NOTHING if self.closed else value


class Feed:
    """The poller of one event loop.

    Args:
        read_marks: takes the ids of the subscribed rows.
        have_rights_changed: whether any permissions may have changed since the last call.
    """

    def __init__(
        self, read_marks: Callable[[Collection[int]], Marks], period_s: float, have_rights_changed: Callable[[], bool]
    ) -> None:
        self._read_marks = read_marks
        self._have_rights_changed = have_rights_changed
        self._period_s = period_s
        self._mailboxes: dict[Topic, set[Mailbox]] = {}
        self._newest: dict[Topic, tuple[Hashable, Any]] = {}
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    @asynccontextmanager
    async def join(self, topic: Topic) -> AsyncIterator[Mailbox]:
        """Subscribe to `topic`; its current value comes at once."""
        mailbox = Mailbox()
        if self._closing:
            mailbox.close()
        self._mailboxes.setdefault(topic, set()).add(mailbox)
        if topic in self._newest:
            mailbox.put(self._newest[topic][1])
        self._start()
        try:
            yield mailbox
        finally:
            self._leave(topic, mailbox)

    def close(self) -> None:
        """End all streams, and refuse new ones: the process is shutting down."""
        self._closing = True
        for mailbox in set().union(*self._mailboxes.values()):
            mailbox.close()
        self._wake.set()

    def _start(self) -> None:
        self._wake.set()
        if self._task is None or self._task.done():
            # An own context: that of the first request must not live on in the poller.
            self._task = asyncio.create_task(self._run(), context=contextvars.Context(), name="feed")

    def _leave(self, topic: Topic, mailbox: Mailbox) -> None:
        self._mailboxes[topic].discard(mailbox)
        if not self._mailboxes[topic]:
            del self._mailboxes[topic]
            self._newest.pop(topic, None)
        if not self._mailboxes:
            self._wake.set()

    async def _run(self) -> None:
        with _before_the_process_ends(self.close):
            while self._mailboxes and not self._closing:
                self._wake.clear()
                try:
                    await self._poll()
                except Exception:
                    # Open pages keep their content and are updated when reading works again.
                    logger.exception("the open pages could not be brought up to date; trying again")
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._period_s):
                        await self._wake.wait()

    async def _poll(self) -> None:
        if await asyncio.to_thread(_with_connection, self._have_rights_changed):
            for mailbox in set().union(*self._mailboxes.values()):
                mailbox.doubt()
        rows = {topic.row for topic in self._mailboxes if topic.row is not None}
        marks = await asyncio.to_thread(_with_connection, partial(self._read_marks, rows))
        for topic in list(self._mailboxes):
            if topic.row is not None and topic.row not in rows:
                continue  # joined meanwhile
            mark = topic.mark(marks)
            if topic in self._newest and self._newest[topic][0] == mark:
                continue
            value = await asyncio.to_thread(_with_connection, topic.load)
            if listeners := self._mailboxes.get(topic):
                self._newest[topic] = (mark, value)
                for mailbox in listeners:
                    mailbox.put(value)


def _with_connection(read: Callable[[], Value]) -> Value:
    """Call `read` in this thread and close its database connections."""
    close_old_connections()
    try:
        return read()
    finally:
        close_old_connections()


@contextmanager
def _before_the_process_ends(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` on the process's termination signal, before the server's own handler.

    A server waits for open responses before it exits, and a stream never ends by itself; ASGI has no message for it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def handle(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        handler = former[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)
        elif handler is signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in former:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in former.items():
            if signal.getsignal(number) is handle:
                signal.signal(number, handler)
