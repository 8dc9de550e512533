"""What concerns all workers: done by all of them, in one order, and never waited for in vain."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from serving_runtime.common.errors import NotFound, ServingError, Unavailable
from serving_runtime.server.workers.worker_ipc import Channel, Hub, Member


class Worker:
    """A member that notes what it was told, and by which name it is to fail."""

    def __init__(self, name: str, fails: str = "") -> None:
        self.name = name
        self.fails = fails
        self.told: list[bytes] = []
        self.lost = asyncio.Event()
        self.member: Member

    async def do(self, payload: bytes) -> bytes:
        if self.fails == "by mistake":
            raise RuntimeError(self.fails)
        if self.fails:
            raise NotFound(f"{self.name} {self.fails}")
        await asyncio.sleep(0)
        self.told.append(payload)
        return self.name.encode()

    async def join(self, path: Path) -> None:
        channel = Channel(*await asyncio.open_unix_connection(path))
        self.member = Member(channel, {"it": self.do}, self.lost.set)


@asynccontextmanager
async def meeting(tmp_path: Path, *workers: Worker) -> AsyncIterator[Hub]:
    hub = Hub(len(workers), frozenset({"it"}))
    path = tmp_path / "sock"
    connections: list[asyncio.Task[None]] = []

    def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(asyncio.get_running_loop().create_task(hub.serve(reader, writer)))

    server = await asyncio.start_unix_server(serve, path)
    for worker in workers:
        await worker.join(path)
    try:
        yield hub
    finally:
        for worker in workers:
            worker.member.close()
        server.close()
        await asyncio.wait_for(asyncio.gather(*connections), 60)


async def test_all_do_what_one_is_asked_and_it_gets_what_they_say(tmp_path: Path) -> None:
    workers = Worker("a"), Worker("b"), Worker("c")
    async with meeting(tmp_path, *workers):
        found = await workers[1].member.all_do("it", b"payload")
    assert sorted(found) == sorted(b"abc")
    assert [worker.told for worker in workers] == [[b"payload"]] * 3


async def test_all_do_things_in_the_same_order_whoever_is_asked(tmp_path: Path) -> None:
    workers = Worker("a"), Worker("b"), Worker("c")
    async with meeting(tmp_path, *workers):
        asked = [worker.member.all_do("it", b"%d" % number) for number in range(10) for worker in workers]
        await asyncio.gather(*asked)
    assert workers[0].told == workers[1].told == workers[2].told
    assert len(workers[0].told) == 30


async def test_an_error_of_one_is_the_answer_as_it_was_raised(tmp_path: Path) -> None:
    workers = Worker("a"), Worker("b", fails="does not know it")
    async with meeting(tmp_path, *workers):
        with pytest.raises(NotFound, match=r"^b does not know it$"):
            await workers[0].member.all_do("it", b"")


async def test_a_mistake_of_ours_is_answered_too(tmp_path: Path) -> None:
    workers = Worker("a", fails="by mistake"), Worker("b")
    async with meeting(tmp_path, *workers):
        with pytest.raises(ServingError, match=r"^internal error$"):
            await workers[1].member.all_do("it", b"")


async def test_who_waits_for_a_worker_that_goes_is_told(tmp_path: Path) -> None:
    workers = Worker("a"), Worker("b")
    begun = asyncio.Event()

    async def never(_payload: bytes) -> bytes:
        begun.set()
        await asyncio.Event().wait()
        return b""

    async with meeting(tmp_path, *workers):
        workers[1].member._does = {"it": never}
        asked = asyncio.ensure_future(workers[0].member.all_do("it", b""))
        await asyncio.wait_for(begun.wait(), 60)
        workers[1].member.close()
        with pytest.raises(Unavailable, match="a worker of the server has ended"):
            await asyncio.wait_for(asked, 60)


async def test_a_worker_learns_that_who_started_it_has_gone(tmp_path: Path) -> None:
    worker = Worker("a")
    path = tmp_path / "sock"

    async def leave(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_unix_server(leave, path)
    await worker.join(path)
    await asyncio.wait_for(worker.lost.wait(), 60)
    worker.member.close()
    server.close()
