"""Connections that send much: each turn of the loop reads from a few of them, and all of them get on."""

import asyncio
from collections import Counter

import pytest
import uvloop

from serving_runtime.protocol.http.wire.large_body import LargeBody
from serving_runtime.protocol.http.wire.limits import MUCH_BYTES, HttpLimits
from serving_runtime.protocol.turns import AT_ONCE, ReadTurns
from tests.serving_runtime._support.http_listener import Desk, Served, post, serving

CLIENTS = 12
BODY = bytes(8 * 1024 * 1024)


class LoopTurns:
    """Counts the turns of the running loop."""

    def __init__(self) -> None:
        self.now = 0
        self._loop = asyncio.get_running_loop()
        self._next()

    def _next(self) -> None:
        self.now += 1
        self._loop.call_soon(self._next)


def test_those_who_wait_go_on_a_few_at_a_time_in_their_order() -> None:
    async def play() -> None:
        turns, loop_turns = ReadTurns(), LoopTurns()
        went: list[tuple[int, int]] = []
        for number in range(7):
            turns.wait(lambda number=number: went.append((number, loop_turns.now)))  # type: ignore[misc]
        async with asyncio.timeout(10):
            while len(went) < 7:  # noqa: ASYNC110
                await asyncio.sleep(0)
        assert [number for number, _ in went] == list(range(7))
        assert max(Counter(turn for _, turn in went).values()) == AT_ONCE

    asyncio.run(play())


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_turn_of_the_loop_reads_from_a_few_large_bodies(
    new_loop: type[asyncio.AbstractEventLoop], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: Counter[int] = Counter()

    async def send(served: Served[Desk]) -> None:
        client = await served.client()
        client.writer.transport.set_write_buffer_limits(high=1)
        client.send(post(BODY, path="/now"))
        assert (await client.answer())[0] == 200

    async def play() -> None:
        loop_turns = LoopTurns()
        buffer_updated = LargeBody.buffer_updated

        def counted(body: LargeBody, nbytes: int) -> None:
            reads[loop_turns.now] += nbytes >= MUCH_BYTES
            buffer_updated(body, nbytes)

        monkeypatch.setattr(LargeBody, "buffer_updated", counted)
        async with serving(Desk(), HttpLimits(max_body_bytes=len(BODY))) as served:
            async with asyncio.timeout(60):
                await asyncio.gather(*[send(served) for _ in range(CLIENTS)])

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(play())
    assert sum(reads.values()) > CLIENTS
    assert max(reads.values()) <= CLIENTS // 2  # those whose turn found nothing to read may do so in another's
