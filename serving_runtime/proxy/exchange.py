"""Exchange: one request of a client, forwarded to the container, and its answer back.

    begin --> (waits for a place) --> (connects) --> sending and receiving --> ended: answered, failed or cancelled

Bytes pass as they come; the side that reads slowly slows the other one down. The duration that counts runs from the
request's last byte to the answer's, without the time that the client did not read.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import NamedTuple

from serving_runtime.common.errors import FailureReason, Overloaded, ServingError
from serving_runtime.common.statuses import http_status
from serving_runtime.proxy.client_connection import ClientConnection
from serving_runtime.proxy.connection_pool import ConnectionPool, Unreachable
from serving_runtime.proxy.container_connection import ContainerConnection
from serving_runtime.proxy.heads import AnswerHead, RequestHead, answer_lines, request_lines
from serving_runtime.proxy.incoming import Incoming
from serving_runtime.proxy.places import Places
from serving_runtime.proxy.request_counts import RequestCounts, now_ns

logger = logging.getLogger(__name__)


class Inference(NamedTuple):
    """What counts and limits inference requests."""

    counts: RequestCounts
    places: Places


class Exchange:
    """One request, from its arrival to its end.

    Args:
        inference: for inference requests; None for others, which are neither counted nor limited.

    Attributes:
        caller, rows, waiting: of an item of a FairQueue.
        on_ended: called once it is answered, or will not be.
    """

    rows = 1

    def __init__(
        self,
        head: RequestHead,
        incoming: Incoming,
        client: ClientConnection,
        pool: ConnectionPool,
        inference: Inference | None,
    ) -> None:
        self.caller = incoming.caller
        self.waiting = True
        self.on_ended: Callable[[], None] | None = None
        self.bodiless = head.method == b"HEAD"
        self._head = head
        self._incoming = incoming
        self._client = client
        self._pool = pool
        self._inference = inference
        self._queued = self._placed = self._ended = False
        self._chunked = False
        self._streams = not incoming.whole
        self._body_ended = False
        self._connecting: asyncio.Task[None] | None = None
        self._connection: ContainerConnection | None = None
        self._status = 0
        self._paused_at_ns = 0
        self._arrived_ns = self._entered_ns = now_ns()

    def begin(self) -> None:
        """Start the request now or when there is a place; raises Overloaded."""
        if self._inference is None:
            self._connect()
            return
        self._inference.counts.began()
        self._queued = True
        try:
            self._inference.places.take(self)
        except Overloaded:
            self._queued = False
            self._end(FailureReason.REJECTED)
            raise

    # Called by the places

    def enter(self) -> None:
        self._queued, self._placed = False, True
        self._entered_ns = now_ns()
        self._connect()

    def refuse(self, error: Overloaded) -> None:
        self._queued = False
        self._end(FailureReason.REJECTED)
        refuse(self._client, error)

    # Towards the container

    def _connect(self) -> None:
        connection = self._pool.unused()
        if connection is not None:
            self._send(connection)
        else:
            self._connecting = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        try:
            connection = await self._pool.connect()
        except Unreachable as error:
            self._connecting = None
            self._fail(503, f"{error}; it may be starting")
            return
        self._connecting = None
        if self._ended:
            connection.drop()
        else:
            self._send(connection)

    def _send(self, connection: ContainerConnection) -> None:
        self._connection = connection
        incoming, head = self._incoming, self._head
        whole_bytes = incoming.held_bytes if incoming.whole and head.length is None else None
        self._chunked = head.length is None and whole_bytes is None
        connection.request(b"".join((request_lines(head, whole_bytes), *self._body())), self)
        connection.sent = self._body_ended
        if self._paused_at_ns:
            connection.pause()
        self._client.body_taken()

    def body_arrived(self) -> None:
        """Pass on what has arrived of the body, unless the container is slow to read it."""
        connection, incoming = self._connection, self._incoming
        if self._streams and incoming.whole:
            self._streams = False
            self._arrived_ns = now_ns()
        if self._body_ended or connection is None or connection.full:
            return
        connection.write(b"".join(self._body()))
        connection.sent = self._body_ended
        self._client.body_taken()

    def _body(self) -> Iterator[bytes]:
        """Yield what has arrived of the body, as the container gets it."""
        for piece in self._incoming.take():
            yield b"%x\r\n%b\r\n" % (len(piece), piece) if self._chunked else piece
        if self._incoming.whole:
            self._body_ended = True
            if self._chunked:
                yield b"0\r\n\r\n"

    def on_writable(self) -> None:
        self.body_arrived()

    # Towards the client

    def on_answer_head(self, head: AnswerHead) -> None:
        self._status = head.status
        self._client.begin_answer(head.status, answer_lines(head, of_runtime=self._pool.is_runtime), head.length)

    def on_answer_piece(self, piece: bytes) -> None:
        self._client.piece(piece)

    def on_answer_read(self) -> None:
        self._client.flush()

    def on_answer_end(self) -> None:
        self._end(None)
        self._client.end_answer()

    def on_broken(self, reason: str, status: int) -> None:
        logger.warning("%s", reason)
        self._fail(status, reason)

    def pause(self) -> None:
        """Stop reading the answer: the client does not take it."""
        self._paused_at_ns = self._paused_at_ns or now_ns()
        if self._connection is not None:
            self._connection.pause()

    def resume(self) -> None:
        if self._paused_at_ns:
            self._arrived_ns += now_ns() - self._paused_at_ns
            self._paused_at_ns = 0
        if self._connection is not None:
            self._connection.resume()

    def cancel(self) -> None:
        """End the request of a client that has left."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.drop()
        self._end(FailureReason.CANCELED)

    # The end

    def _fail(self, status: int, message: str) -> None:
        """Answer with an error, or end the answer that has begun."""
        if self._ended:
            return
        self._end(FailureReason.BACKEND)
        if self._status:
            self._client.break_answer()
        else:
            self._client.refuse(status, message)

    def _end(self, reason: FailureReason | None) -> None:
        """Count the request and free its place, once."""
        if self._ended:
            return
        self._ended = True
        self._connection = None
        if self._inference is not None:
            self._count(self._inference, reason)
        if self.on_ended is not None:
            self.on_ended()

    def _count(self, inference: Inference, reason: FailureReason | None) -> None:
        duration_ns = max(0, now_ns() - self._arrived_ns)
        if reason is None:
            waited_ns = max(0, min(duration_ns, self._entered_ns - self._arrived_ns))
            inference.counts.ended(self._status, duration_ns, waited_ns)
        else:
            inference.counts.failed(reason, duration_ns)
        if self._placed:
            inference.places.leave()
        elif self._queued:
            inference.places.forget(self)


def refuse(client: ClientConnection, error: ServingError) -> None:
    """Answer with an error of the proxy's own, as the runtime does."""
    retry = b"" if error.retry_after_s is None else b"Retry-After: %d\r\n" % error.retry_after_s
    client.refuse(http_status(error), error.message, retry)
