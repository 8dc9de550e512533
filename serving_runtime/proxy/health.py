"""Health of a container: live where it accepts connections, ready where it says so.

    v2: GET /v2/health/ready answers 2xx        v1: GET /v1/models/NAME answers 2xx, and not "ready": false
    --health_path: GET it answers 2xx

Requests for health at the same time share one question to the container.
"""

import asyncio

import orjson

from serving_runtime.proxy.connection_pool import HOST, ConnectionPool, Unreachable
from serving_runtime.proxy.container_connection import ContainerConnection
from serving_runtime.proxy.heads import AnswerHead, RequestHead, request_lines
from serving_runtime.proxy.options import ProxyLimits, Target

_MAX_BODY_BYTES = 64 * 1024


class Health:
    """Asks one container, or one program in its stead."""

    def __init__(self, target: Target, pool: ConnectionPool, limits: ProxyLimits) -> None:
        self._target = target
        self._host = f"{HOST}:{target.port}".encode()
        self._pool = pool
        self._limits = limits
        self._asking: asyncio.Task[str] | None = None

    async def live(self) -> str:
        """Return why the container accepts no connection; empty where it does."""
        try:
            (await self._pool.connect()).drop()
        except Unreachable as error:
            return str(error)
        return ""

    async def ready(self) -> str:
        """Return why the container is not ready; empty where it is."""
        if self._asking is None or self._asking.done():
            self._asking = asyncio.get_running_loop().create_task(self._ask())
        return await asyncio.shield(self._asking)

    async def _ask(self) -> str:
        name = self._target.name
        question = f"GET {self._target.health_path.decode('latin-1')}"
        try:
            async with asyncio.timeout(self._limits.probe_s):
                answer = await self._answer()
        except TimeoutError:
            return f"{name} has not answered {question} in {self._limits.probe_s:g} s"
        except Unreachable as error:
            return str(error)
        if isinstance(answer, str):
            return f"{question}: {answer}"
        status, body = answer
        if not 200 <= status <= 299:
            return f"{name} answers {question} with {status}"
        if self._target.reads_health and says_not_ready(body):
            return f"{name} answers {question} with a model that is not ready"
        return ""

    async def _answer(self) -> tuple[int, bytes] | str:
        connection = await self._pool.connect()
        probe = _Probe(connection)
        lines = request_lines(RequestHead(b"GET", self._target.health_path, ((b"Host", self._host),)), None)
        connection.request(lines, probe)  # and it is never `sent`: dropped below, it must take no request before
        try:
            return await probe.answer
        finally:
            connection.drop()


def says_not_ready(body: bytes) -> bool:
    """Return whether V1's answer about a model says that it is not ready; TensorFlow Serving's does not say."""
    try:
        content = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(content, dict) and str(content.get("ready", True)).lower() == "false"


class _Probe:
    """Takes the answer to a health request; `answer` is its status and body, or why it is missing."""

    bodiless = False

    def __init__(self, connection: ContainerConnection) -> None:
        self.answer: asyncio.Future[tuple[int, bytes] | str] = asyncio.get_running_loop().create_future()
        self._connection = connection
        self._status = 0
        self._body = bytearray()

    def on_answer_head(self, head: AnswerHead) -> None:
        self._status = head.status

    def on_answer_piece(self, piece: bytes) -> None:
        self._body += piece
        if len(self._body) > _MAX_BODY_BYTES:
            self._set(f"the answer is larger than {_MAX_BODY_BYTES} bytes")

    def on_answer_read(self) -> None: ...

    def on_answer_end(self) -> None:
        self._set((self._status, bytes(self._body)))

    def on_broken(self, reason: str, status: int) -> None:  # noqa: ARG002 - as a Receiver
        self._set(reason)

    def on_writable(self) -> None: ...

    def _set(self, answer: tuple[int, bytes] | str) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)
