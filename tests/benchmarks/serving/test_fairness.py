"""The polite client's figures, and the client itself against a server that answers and refuses."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from benchmarks.serving import fairness
from benchmarks.serving.fairness import CASES, Round, Seen
from benchmarks.serving.requests import Body


def test_the_table_has_medians_of_rounds_and_sums_of_counts() -> None:
    alone = [Round(CASES[0], Seen([float(ms)] * 100), Seen()) for ms in (10, 12, 30)]
    one = [Round(CASES[1], Seen([100.0, 300.0], 3), Seen([1.0] * 1000, 2000))] * 2
    two = [Round(CASES[2], Seen([20.0] * 98 + [90.0] * 2, 0), Seen([1.0], 1))]
    assert list(fairness.lines([*alone, *one, *two]))[2:] == [
        "| polite client alone | 12 | 12 | 300 | 0 | 0 | 0 |",
        "| beside the greedy one, one caller | 200 | 298 | 4 | 6 | 2,000 | 4,000 |",
        "| beside the greedy one, two callers | 20 | 90 | 100 | 0 | 1 | 1 |",
    ]


def test_a_client_without_an_answer_has_no_latency() -> None:
    rounds = [Round(case, Seen([], 5), Seen()) for case in CASES]
    assert "| inf | inf | 0 | 5 |" in list(fairness.lines(rounds))[2]


@asynccontextmanager
async def answering(status: int) -> AsyncIterator[tuple[str, list[bytes]]]:
    """Serve requests of three bytes with a status; yields the address and the heads that come."""
    heads: list[bytes] = []
    over: list[asyncio.Event] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        over.append(asyncio.Event())
        end = over[-1]
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                assert await reader.readexactly(3) == b"abc"
                writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 2\r\n\r\nok" % status)
        writer.close()
        await writer.wait_closed()
        end.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/infer", heads
        for end in over:
            await asyncio.wait_for(end.wait(), 10)


@pytest.mark.parametrize(("status", "found"), [(200, (True, False)), (503, (False, True))])
async def test_a_client_counts_answers_and_refusals_until_its_time_is_over(
    status: int, found: tuple[bool, bool]
) -> None:
    async with answering(status) as (url, heads):
        seen = await fairness.client(url, Body(b"abc", {"X-A": "1"}), "greedy", time.monotonic() + 0.1)
    assert (bool(seen.latencies_ms), bool(seen.refused)) == found
    assert b"\r\nX-A: 1\r\n" in heads[0]
    assert b"\r\nfairlead-caller: greedy\r\n" in heads[0]
    assert len(heads) == len(seen.latencies_ms) + seen.refused


async def test_another_answer_ends_the_benchmark() -> None:
    async with answering(404) as (url, _):
        with pytest.raises(RuntimeError, match="answered 404, not 200 or 503"):
            await fairness.client(url, Body(b"abc"), "", time.monotonic() + 5)
