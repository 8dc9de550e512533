"""Inter-process communication of workers: broadcast of commands to all processes of a server.

Each worker keeps a connection to its parent process. A worker sends a client's command that concerns all workers to
the parent, which has every worker execute it, one command after another, and returns their results.

    frame    two 4-byte lengths, big-endian; a JSON object with kind and id; a payload
    ask      worker -> parent: have all workers do `what` with the payload
    do       parent -> worker: do it
    done     worker -> parent: it is done, or `error` says why not
    answer   parent -> worker: the payloads of all, one after another, or the first error
"""

import asyncio
import json
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

from serving_runtime.common import errors
from serving_runtime.common.errors import ServingError, Unavailable

logger = logging.getLogger(__name__)

_LENGTHS = struct.Struct(">II")

Do: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""A worker's handler of a broadcast command; raises ServingError."""


class Channel:
    """One end of a connection: sends whole frames, receives one at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, payload: bytes = b"", **head: Any) -> None:
        text = json.dumps(head).encode()
        self._writer.writelines((_LENGTHS.pack(len(text), len(payload)), text, payload))

    async def receive(self) -> tuple[dict[str, Any], bytes] | None:
        """Return the next frame's object and payload, None where the other end has closed."""
        try:
            lengths = _LENGTHS.unpack(await self._reader.readexactly(_LENGTHS.size))
            text, payload = [await self._reader.readexactly(length) for length in lengths]
        except (asyncio.IncompleteReadError, ConnectionError):
            return None
        return json.loads(text), payload

    def close(self) -> None:
        self._writer.close()


class Pending:
    """Pending requests of a channel."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._asked = 0

    async def ask(self, payload: bytes, **head: str) -> bytes:
        """Return the other end's response; raises ServingError, Unavailable where it closes."""
        self._asked += 1
        number = self._asked
        answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answered
        self._channel.send(payload, id=number, **head)
        try:
            return await answered
        finally:
            del self._waiting[number]

    def answered(self, head: Mapping[str, Any], payload: bytes) -> None:
        waiting = self._waiting.get(head["id"])
        if waiting is None or waiting.done():
            return
        if "error" in head:
            waiting.set_exception(_error(*head["error"]))
        else:
            waiting.set_result(payload)

    def fail(self) -> None:
        """Fail all pending requests: the other end has closed."""
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(Unavailable("a worker of the server has ended; it is about to stop"))


class Member:
    """A worker's end.

    Args:
        does: its command handlers, by name.
        on_lost: called when the parent process has gone.
    """

    def __init__(self, channel: Channel, does: Mapping[str, Do], on_lost: Callable[[], None]) -> None:
        self._channel = channel
        self._does = does
        self._on_lost = on_lost
        self._pending = Pending(channel)
        self._tasks = {asyncio.get_running_loop().create_task(self._listen())}

    async def all_do(self, what: str, payload: bytes) -> bytes:
        """Have all workers execute a command, this one among them; return their payloads, one after another.

        Raises the first ServingError; some workers may have executed it then.
        """
        return await self._pending.ask(payload, kind="ask", what=what)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self._channel.close()

    async def _listen(self) -> None:
        while (frame := await self._channel.receive()) is not None:
            head, payload = frame
            if head["kind"] == "do":
                task = asyncio.get_running_loop().create_task(self._do(head["id"], head["what"], payload))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                self._pending.answered(head, payload)
        self._pending.fail()
        self._on_lost()

    async def _do(self, number: int, what: str, payload: bytes) -> None:
        try:
            self._channel.send(await self._does[what](payload), kind="done", id=number)
        except ServingError as error:
            self._channel.send(kind="done", id=number, error=_described(error))
        except Exception:  # a bug of ours: the caller must not wait for ever
            logger.exception("what all workers were to do, %s, failed", what)
            self._channel.send(kind="done", id=number, error=_described(ServingError("internal error")))


class Hub:
    """The parent process's end.

    Args:
        count: of workers; commands begin once all have connected.
        in_order: the commands that all workers execute in the same order.
    """

    def __init__(self, count: int, in_order: frozenset[str]) -> None:
        self._count = count
        self._in_order = in_order
        self._members: list[Pending] = []
        self._complete = asyncio.Event()
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one worker's connection."""
        channel = Channel(reader, writer)
        member = Pending(channel)
        self._members.append(member)
        if len(self._members) == self._count:
            self._complete.set()
        while (frame := await channel.receive()) is not None:
            head, payload = frame
            if head["kind"] == "ask":
                task = asyncio.get_running_loop().create_task(self._carry(channel, head["id"], head["what"], payload))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            else:
                member.answered(head, payload)
        member.fail()
        channel.close()

    async def _carry(self, channel: Channel, number: int, what: str, payload: bytes) -> None:
        await self._complete.wait()
        try:
            if what in self._in_order:
                async with self._turn:
                    found = await self._all(what, payload)
            else:
                found = await self._all(what, payload)
            channel.send(found, kind="answer", id=number)
        except ServingError as error:
            channel.send(kind="answer", id=number, error=_described(error))

    async def _all(self, what: str, payload: bytes) -> bytes:
        outcomes = await asyncio.gather(
            *[member.ask(payload, kind="do", what=what) for member in self._members], return_exceptions=True
        )
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return b"".join(outcome for outcome in outcomes if isinstance(outcome, bytes))


def _described(error: ServingError) -> tuple[str, str]:
    return type(error).__name__, error.message


def _error(kind: str, message: str) -> ServingError:
    found = getattr(errors, kind, ServingError)
    error: ServingError = found(message)
    return error
