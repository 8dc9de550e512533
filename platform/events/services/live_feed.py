"""One poller for all open streams of a web process: who listens to a topic gets its newest value when it has changed.

The database is asked once a period and only while somebody listens, whatever the number of streams; a value is loaded
once for all who wait for it. A listener that is slow skips values instead of piling them up: each is the whole state.

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
"""What a mailbox gives that has no new value: it was closed, or its listener is to be looked at anew."""


@dataclass(frozen=True, slots=True)
class Marks:
    """By what a poller sees that something is to be shown anew: other marks, other values.

    Attributes:
        everything: of all rows together, a number; what it costs to read does not grow with theirs.
        of: of the rows that were asked for and are there, by id.
    """

    everything: int
    of: Mapping[int, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Topic:
    """What a stream follows; topics with the same key are the same.

    Attributes:
        row: the id of the row that it is about; None where it is about all.
        mark: from what was read to the topic's own mark; another mark means another value.
        load: reads the value, in a thread.
    """

    key: Hashable
    mark: Callable[[Marks], Hashable] = field(compare=False)
    load: Callable[[], Any] = field(compare=False)
    row: int | None = None

    @classmethod
    def of_row(cls, row: int, load: Callable[[], Any], *, key: Hashable) -> "Topic":
        """Return the topic of what changes with one row alone."""
        return cls(key, lambda marks: marks.of.get(row), load, row)


class Mailbox:
    """Holds the newest value that a listener has not taken yet.

    Attributes:
        closed: no more will come.
        doubted: somebody's rights have changed; the listener looks whether his have, and takes the doubt away.
    """

    def __init__(self) -> None:
        self._value: Any = NOTHING
        self._full = asyncio.Event()
        self.closed = False
        self.doubted = False

    def put(self, value: Any) -> None:
        """Replace what is there."""
        self._value = value
        self._full.set()

    def close(self) -> None:
        """Wake the listener for the last time."""
        self.closed = True
        self._full.set()

    def doubt(self) -> None:
        """Wake the listener to look whether he may go on."""
        self.doubted = True
        self._full.set()

    async def take(self) -> Any:
        """Return the next value; NOTHING where there is none but the listener should look at `closed` and `doubted`."""
        await self._full.wait()
        self._full.clear()
        value, self._value = self._value, NOTHING
        return NOTHING if self.closed else value


class Feed:
    """The poller of one event loop.

    Args:
        read_marks: takes the ids of the rows that are listened to.
        have_rights_changed: whether anybody's rights may have since the last call.
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
        """Listen to `topic`; its present value comes at once."""
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
        """End all streams, now and from now on: the process is going."""
        self._closing = True
        for mailbox in set().union(*self._mailboxes.values()):
            mailbox.close()
        self._wake.set()

    def _start(self) -> None:
        self._wake.set()
        if self._task is None or self._task.done():
            # A context of its own: the one of the request that came first must not live on in the poller.
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
                    # The open pages keep what they show and are brought up to date when it works again.
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
                continue  # it was joined meanwhile
            mark = topic.mark(marks)
            if topic in self._newest and self._newest[topic][0] == mark:
                continue
            value = await asyncio.to_thread(_with_connection, topic.load)
            if listeners := self._mailboxes.get(topic):
                self._newest[topic] = (mark, value)
                for mailbox in listeners:
                    mailbox.put(value)


def _with_connection(read: Callable[[], Value]) -> Value:
    """Call `read` in this thread and leave no database connection behind in it."""
    close_old_connections()
    try:
        return read()
    finally:
        close_old_connections()


@contextmanager
def _before_the_process_ends(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` when the process is told to end, before the server's own handler.

    A server waits for open answers before it goes, and a stream would never end by itself; ASGI has no word for it.
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
