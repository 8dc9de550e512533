"""The poller that all streams of a process share. Its source here is a table in memory in place of the database."""

import asyncio
import os
import signal
from collections.abc import Callable, Collection

import pytest

from events.services.live_feed import NOTHING, Feed, Marks, Topic

DEADLINE_S = 5.0


class Table:
    """Marks and values of services, and how often each was read."""

    def __init__(self) -> None:
        self.marks: dict[int, tuple[int, int]] = {1: (0, 0), 2: (0, 0)}
        self.polls = 0
        self.loads: list[int] = []
        self.asked: list[set[int]] = []
        self.fail_next = False
        self.rights_changed = False

    def have_rights_changed(self) -> bool:
        changed, self.rights_changed = self.rights_changed, False
        return changed

    def read_marks(self, rows: Collection[int]) -> Marks:
        self.polls += 1
        if self.fail_next:
            self.fail_next = False
            raise ConnectionError("the database is away")
        self.asked.append(set(rows))
        return Marks(sum(map(sum, self.marks.values())), {row: self.marks[row] for row in rows if row in self.marks})

    def topic(self, service: int) -> Topic:
        def load() -> str:
            self.loads.append(service)
            return f"{service} at {self.marks[service]}"

        return Topic.of_row(service, load, key=service)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - a table in memory has no event to wait for
            await asyncio.sleep(0.005)


async def test_all_listeners_of_a_topic_share_one_load_and_one_poller() -> None:
    table = Table()
    feed = Feed(table.read_marks, 0.01, table.have_rights_changed)

    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as first, feed.join(table.topic(1)) as second:
        assert await first.take() == await second.take() == "1 at (0, 0)"
        table.marks[1] = (1, 0)
        assert await first.take() == await second.take() == "1 at (1, 0)"

    assert table.loads == [1, 1]


async def test_every_listener_is_woken_when_rights_have_changed() -> None:
    table = Table()
    feed = Feed(table.read_marks, 0.01, table.have_rights_changed)

    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as first, feed.join(table.topic(2)) as second:
        for mailbox in (first, second):
            await mailbox.take()
            assert not mailbox.doubted
        table.rights_changed = True
        for mailbox in (first, second):
            assert await mailbox.take() is NOTHING
            assert mailbox.doubted


async def test_a_listener_hears_only_of_its_own_topic() -> None:
    table = Table()
    feed = Feed(table.read_marks, 0.01, table.have_rights_changed)

    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as mailbox:
        await mailbox.take()
        table.marks[2] = (9, 9)
        polled = table.polls
        await until(lambda: table.polls > polled + 1)
        table.marks[1] = (1, 1)
        assert await mailbox.take() == "1 at (1, 1)"

    assert table.loads == [1, 1]


async def test_a_slow_listener_gets_the_newest_value_and_not_all_of_them() -> None:
    table = Table()
    feed = Feed(table.read_marks, 0.01, table.have_rights_changed)

    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as mailbox:
        for change in (1, 2, 3):
            table.marks[1] = (change, 0)
            loaded = len(table.loads)
            await until(lambda loaded=loaded: len(table.loads) > loaded)  # type: ignore[misc]
        polled = table.polls
        await until(lambda: table.polls > polled)
        assert await mailbox.take() == "1 at (3, 0)"


async def test_the_database_is_left_alone_when_nobody_listens() -> None:
    table = Table()
    feed = Feed(table.read_marks, 0.01, table.have_rights_changed)
    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as mailbox:
        await mailbox.take()

    await until(lambda: all(task.get_name() != "feed" for task in asyncio.all_tasks()))

    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as mailbox:
        assert await mailbox.take() == "1 at (0, 0)"


async def test_an_outage_is_survived(caplog: pytest.LogCaptureFixture) -> None:
    table = Table()
    table.fail_next = True
    feed = Feed(table.read_marks, 0.01, table.have_rights_changed)

    async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as mailbox:
        assert await mailbox.take() == "1 at (0, 0)"

    assert "could not be brought up to date" in caplog.text


async def test_streams_end_when_the_process_is_told_to_and_its_own_handler_still_runs() -> None:
    table = Table()
    told: list[int] = []
    former = signal.signal(signal.SIGTERM, lambda number, _frame: told.append(number))
    try:
        feed = Feed(table.read_marks, 0.01, table.have_rights_changed)
        async with asyncio.timeout(DEADLINE_S), feed.join(table.topic(1)) as mailbox:
            await mailbox.take()
            os.kill(os.getpid(), signal.SIGTERM)
            assert await mailbox.take() is NOTHING
            assert mailbox.closed
            async with feed.join(table.topic(1)) as late:
                assert await late.take() is NOTHING
        assert told == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, former)
