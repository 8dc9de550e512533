"""Intake of labels: answers requests to `/<namespace>/<service>/feedback` once the labels are on the disk.

Requests that come within a moment are written as one, since each write waits for the disk. The control plane reads
the files (`feedback_spool`), and need not run.
"""

import asyncio
import json
import logging
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvicorn

from common.errors import InvalidInput
from common.labels import MOST_LABELS, labels_of
from integrations.clusters.local.agent.sockets import short_folder
from integrations.clusters.local.envoy.access import CALLER_HEADER
from integrations.clusters.local.envoy.feedback import AT_ONCE, SUFFIX
from integrations.clusters.local.feedback_spool import Batch, Spool
from integrations.clusters.local.files import Layout

log = logging.getLogger(__name__)

MOST_BODY_BYTES = 4 << 20
_TOGETHER_S = 0.02
_RETRY_AFTER_S = 30
_MOST_NAME = 100
_EXPECTED = 'expected {"labels": [{"request_id": "…", "value": …}, …]}'

Labels = list[dict[str, Any]]


def feedback_socket(layout: Layout) -> Path:
    """Return the path of the intake's socket; raises PermissionError as `short_folder`."""
    name = "labels.sock"
    return short_folder(layout.envoy, name) / name


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    content: dict[str, object]


class Intake:
    """The intake of one agent; use it from one event loop."""

    def __init__(self, spool: Spool, place: Path) -> None:
        self._spool = spool
        self._place = place
        self._waiting: list[tuple[Batch, asyncio.Future[str]]] = []
        self._come = asyncio.Event()

    async def run(self) -> None:
        """Listen and write until cancelled."""
        try:
            listening = self._listening()
        except OSError as error:
            log.error("the gateway takes no labels: %s: %s", self._place, error)
            return
        config = uvicorn.Config(
            self._answer,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            limit_concurrency=4 * AT_ONCE,
            timeout_graceful_shutdown=2,
        )
        server = _Server(config)
        writing = asyncio.create_task(self._write())
        try:
            await server.serve(sockets=[listening])
        finally:
            writing.cancel()
            self._place.unlink(missing_ok=True)

    def _listening(self) -> socket.socket:
        self._place.unlink(missing_ok=True)  # of an agent that was killed
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(self._place))
        self._place.chmod(0o600)
        return listening

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        answer = await self._taken(scope, receive)
        headers = [(b"content-type", b"application/json")]
        if answer.status == 503:
            headers.append((b"retry-after", str(_RETRY_AFTER_S).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": json.dumps(answer.content).encode()})

    async def _taken(self, scope: Any, receive: Any) -> _Answer:
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return _Answer(499, {"error": "the client left"})
            body += message.get("body", b"")
            if len(body) > MOST_BODY_BYTES:
                return _refused(413, f"the labels take more than {MOST_BODY_BYTES >> 20} MiB; send them in several")
            if not message.get("more_body"):
                break
        try:
            labels = await asyncio.to_thread(checked, bytes(body), datetime.now(UTC))
        except InvalidInput as error:
            return _refused(400, error.message)
        by = headers.get(CALLER_HEADER.encode(), "")[:_MOST_NAME]
        batch = Batch(scope["path"].removesuffix(SUFFIX).strip("/"), by, time.time(), labels)
        written: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((batch, written))
        self._come.set()
        if refusal := await written:
            return _refused(503, f"{refusal}; send them again later")
        return _Answer(202, {"received": len(labels)})

    async def _write(self) -> None:
        """Write what has come, as one."""
        while True:
            await self._come.wait()
            await asyncio.sleep(_TOGETHER_S)
            self._come.clear()
            taken, self._waiting = self._waiting, []
            try:
                refusals = await asyncio.to_thread(self._spool.write, [batch for batch, _ in taken])
            except OSError as error:
                log.error("%d requests with labels are refused: %s", len(taken), error)
                refusals = [f"labels cannot be written to this machine's disk: {error.strerror}"] * len(taken)
            for (_, written), refusal in zip(taken, refusals, strict=True):
                with suppress(asyncio.InvalidStateError):  # of a request that was cancelled
                    written.set_result(refusal)


def checked(body: bytes, now: datetime) -> Labels:
    """Return the labels of a body; raises InvalidInput where one of them is not taken."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the body is no JSON: {str(error)[:100]}; {_EXPECTED}") from error
    labels = content.get("labels") if isinstance(content, dict) else None
    if not isinstance(labels, list) or len(content) > 1:
        raise InvalidInput(f"the body is no list of labels; {_EXPECTED}")
    labels_of(labels, now=now, most=MOST_LABELS)
    return labels


class _Server(uvicorn.Server):
    """Leaves the signals to the agent."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _refused(status: int, sentence: str) -> _Answer:
    return _Answer(status, {"error": sentence})
