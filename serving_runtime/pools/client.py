"""Client of a pool's fetcher: one connection for all requests of a runtime, made again when it breaks."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import (
    InvalidArgument,
    ModelError,
    NotFound,
    ServingError,
    Unavailable,
    Unsupported,
)
from serving_runtime.pools import messages

logger = logging.getLogger(__name__)

_AGAIN_S = 0.1
"""Wait between two attempts to connect."""

_ERRORS: dict[str, type[ServingError]] = {
    messages.UNKNOWN: NotFound,
    messages.UNAVAILABLE: Unavailable,
    messages.CORRUPT: ModelError,
    messages.UNSUPPORTED: Unsupported,
    messages.TOO_LARGE: ModelError,
    messages.INVALID: InvalidArgument,
}


class FailedError(Exception):
    """An error of the fetcher.

    Attributes:
        error: for the clients that wait.
        kind: of `messages`.
        retry_s: how long not to request the same again.
    """

    def __init__(self, error: ServingError, kind: str, retry_s: float) -> None:
        super().__init__(str(error))
        self.error = error
        self.kind = kind
        self.retry_s = retry_s


class FetcherClient:
    """Asks the fetcher at a Unix socket. Lives on one event loop.

    Attributes:
        was_connected: whether the fetcher was ever reached.
        requests: number of requests that were sent.
    """

    def __init__(self, socket: Path) -> None:
        self.was_connected = False
        self.requests = 0
        self._socket = socket
        self._holds: dict[str, int] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._next = 0

    async def ask(self, content: dict[str, Any], *, patience_s: float) -> dict[str, Any]:
        """Return the fetcher's answer; raises FailedError.

        Args:
            patience_s: how long to try again where the fetcher is not there, or ends before it answers.
        """
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + patience_s
        while True:
            try:
                answer = await self._ask(content)
                break
            except OSError as error:
                if loop.time() + _AGAIN_S > ends_at:
                    raise self._away(error) from error
                await asyncio.sleep(_AGAIN_S)
        failure = answer.get("error")
        if failure is not None:
            kind, message, retry_s = failure["kind"], failure["message"], failure["retry_s"]
            made = _ERRORS.get(kind, ModelError)(message)
            if made.kind is Unavailable.kind:
                made.retry_after_s = max(1, round(retry_s))
            raise FailedError(made, kind, retry_s)
        return answer

    def hold(self, digest: str) -> None:
        """Count a folder that an answer held, so that it is held again after the connection broke."""
        self._holds[digest] = self._holds.get(digest, 0) + 1

    def release(self, digest: str) -> None:
        """Release a folder that an answer held."""
        left = self._holds.get(digest, 0) - 1
        if left > 0:
            self._holds[digest] = left
        else:
            self._holds.pop(digest, None)
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(messages.line({"release": digest}))

    async def connect(self) -> None:
        """Connect unless it is connected; raises OSError."""
        if self._writer is not None and not self._writer.is_closing():
            return
        if self._connecting is None:
            self._connecting = asyncio.get_running_loop().create_task(self._connect())
            self._connecting.add_done_callback(self._connected)
        await asyncio.shield(self._connecting)

    def close(self) -> None:
        for task in (self._connecting, self._reading):
            if task is not None:
                task.cancel()
        if self._writer is not None:
            self._writer.close()

    def _connected(self, connecting: "asyncio.Task[None]") -> None:
        self._connecting = None
        if not connecting.cancelled():
            connecting.exception()  # retrieved; those who wait get it

    async def _connect(self) -> None:
        reader, writer = await asyncio.open_unix_connection(self._socket, limit=messages.MAX_LINE_BYTES)
        self._writer = writer
        self.was_connected = True
        held = [digest for digest, times in self._holds.items() for _ in range(times)]
        if held:
            writer.write(messages.line({"hold": held[: messages.MAX_HOLDS]}))
        self._reading = asyncio.get_running_loop().create_task(self._read(reader, writer))

    async def _ask(self, content: dict[str, Any]) -> dict[str, Any]:
        await self.connect()
        writer = self._writer
        if writer is None or writer.is_closing():
            raise ConnectionResetError("it has just ended")
        self._next += 1
        number = self._next
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._answers[number] = answer
        self.requests += 1
        writer.write(messages.line({"id": number, **content}))
        try:
            return await answer
        finally:
            self._answers.pop(number, None)

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while text := await reader.readline():
                answer = json.loads(text)
                future = self._answers.get(answer.get("id"))
                if future is not None and not future.done():
                    future.set_result(answer)
                elif "folder" in answer:  # its request was cancelled
                    writer.write(messages.line({"release": answer["digest"]}))
        except (OSError, ValueError) as error:
            logger.warning("the connection to the pool's fetcher broke: %s", error)
        finally:
            writer.close()
            for future in self._waiting():
                future.set_exception(ConnectionResetError("it ended before it answered"))

    def _waiting(self) -> Iterable["asyncio.Future[dict[str, Any]]"]:
        return [future for future in self._answers.values() if not future.done()]

    def _away(self, error: OSError) -> FailedError:
        away = Unavailable(
            f"the fetcher of the model pool at {self._socket} cannot be reached: {error.strerror or error}; see "
            "whether `fairlead-serve pool-fetcher` runs, and try again"
        )
        away.retry_after_s = 1
        return FailedError(away, messages.UNAVAILABLE, 0.0)


async def connect_soon(client: FetcherClient) -> None:
    """Connect once the fetcher listens, so that the server becomes ready without a request."""
    while not client.was_connected:
        with contextlib.suppress(OSError):
            await client.connect()
            return
        await asyncio.sleep(_AGAIN_S)
