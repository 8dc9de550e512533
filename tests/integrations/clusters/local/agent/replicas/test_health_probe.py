"""What the health probe makes of a process that answers, and of one that does so wrongly, late or without end."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest

from integrations.clusters.local.agent.replicas.health_probe import HealthProbe

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
_TIMEOUT_S = 0.5


class Process:
    """Answers each question of each connection with the next of `answers`, the last one again and again."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.questions: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(EOFError, OSError, asyncio.CancelledError):
            while True:
                self.questions.append(await reader.readuntil(b"\r\n\r\n"))
                writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
                await writer.drain()
        writer.close()


@asynccontextmanager
async def _probed(process: Process, socket: Path) -> AsyncIterator[HealthProbe]:
    server = await asyncio.start_unix_server(process.serve, socket)
    with closing(HealthProbe(str(socket), timeout_s=_TIMEOUT_S)) as probe:
        yield probe
    server.close()


async def test_it_asks_again_over_the_same_connection(tmp_path: Path) -> None:
    process = Process(
        b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        b'HTTP/1.1 503 Unavailable\r\nContent-Length: 13\r\n\r\n{"error":"x"}',
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    )
    async with _probed(process, tmp_path / "s") as probe:
        assert [await probe.is_ready() for _ in range(3)] == [True, False, True]
    assert process.connections == 1
    assert process.questions[0] == b"GET /v2/health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def test_it_asks_a_port_too(tmp_path: Path) -> None:
    process = Process(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
    server = await asyncio.start_server(process.serve, "127.0.0.1", 0)
    with closing(HealthProbe(server.sockets[0].getsockname()[1], timeout_s=_TIMEOUT_S)) as probe:
        assert await probe.is_ready() is True
    server.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"HTTP/1.1 200 OK\r\n\r\n", id="no length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", id="it closes"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", id="a body that nobody waits for"),
    ],
)
async def test_an_answer_whose_end_is_unknown_counts_and_its_connection_is_closed(
    tmp_path: Path, answer: bytes
) -> None:
    process = Process(answer)
    async with _probed(process, tmp_path / "s") as probe:
        assert [await probe.is_ready() for _ in range(2)] == [True, True]
    assert process.connections == 2


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="none"),
        pytest.param(b"\xff" * 100_000, id="a head without end"),
        pytest.param(b"hello\r\n\r\n", id="no status"),
        pytest.param(b"HTTP/1.1 fine OK\r\n\r\n", id="a status that is no number"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}", id="half a body"),
    ],
)
async def test_what_is_no_answer_is_none_and_the_next_question_is_asked_anew(tmp_path: Path, answer: bytes) -> None:
    process = Process(answer, b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    async with _probed(process, tmp_path / "s") as probe:
        assert [await probe.is_ready() for _ in range(2)] == [None, True]
    assert process.connections == 2


async def test_nobody_there_is_no_answer(tmp_path: Path) -> None:
    with closing(HealthProbe(str(tmp_path / "nothing"), timeout_s=_TIMEOUT_S)) as probe:
        assert await probe.is_ready() is None
