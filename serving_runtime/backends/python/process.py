"""Worker process, server side: start, requests, responses, log output, termination.

One thread receives messages, one copies the process's output to the log, one sends what must not block the event loop.
They end with the process.
"""

import contextlib
import itertools
import logging
import os
import queue
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from serving_runtime.backends.python import own_metrics
from serving_runtime.backends.python.calls import CallServer
from serving_runtime.backends.python.wire.channel import Channel, ChannelClosedError
from serving_runtime.backends.python.wire.failures import error_from
from serving_runtime.common.errors import BackendError, ModelError, ServingError
from serving_runtime.common.isolation import interpreter
from serving_runtime.common.request import NO_PARAMETERS, Tensor
from serving_runtime.telemetry.metrics.custom_metrics import OWN

logger = logging.getLogger(__name__)

_LAST_S = 5.0
"""How long a process may take to end after it has closed its connection."""

_LONGEST_LINE = 8192
_LEVELS = {"info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR, "verbose": logging.DEBUG}
_numbers = itertools.count()


class Response(NamedTuple):
    """One response of a worker to a request.

    Attributes:
        outputs: None in a message that only ends the responses.
        final: the last one.
    """

    outputs: Sequence[Tensor] | None
    error: ServingError | None = None
    parameters: Mapping[str, Any] = NO_PARAMETERS
    final: bool = True


OnResponse = Callable[[Response], None]
"""Called in the receiving thread; must not block."""


class Asking(NamedTuple):
    """One request to a worker: the content of `worker.messages.IncomingRequest`."""

    content: Mapping[str, Any]
    inputs: Sequence[Tensor]
    on_response: OnResponse


class WorkerProcess:
    """A process that runs one instance of a model.

    Args:
        file: the model's.
        where: model and version in words, for the log and for errors.
        calls: serves its requests to the server.
        on_end: called once when the process has ended by itself.

    Attributes:
        load: its number of requests; kept by the pool.
        finalize_s: how long `finalize` may take before the process is killed.
    """

    finalize_s = 30.0

    def __init__(self, file: Path, where: str, calls: CallServer, on_end: Callable[["WorkerProcess"], None]) -> None:
        self.load = 0
        self._where = where
        self._calls = calls
        self._on_end = on_end
        self._outbox: queue.SimpleQueue[tuple[dict[str, Any], Sequence[Tensor]] | None] = queue.SimpleQueue()
        self._pending: dict[int, OnResponse] = {}
        self._lock = threading.Lock()
        self._replies: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._why = ""
        self._stopping = False
        self._ended = False
        self._started = False
        self._process, self._channel = self._begin(file)
        self._threads = [
            threading.Thread(target=work, name=f"{name} of {where}", daemon=True)
            for name, work in (
                ("answers", self._receive),
                ("output", self._log_output),
                ("orders", self._send_orders),
            )
        ]
        for thread in self._threads:
            thread.start()

    def _begin(self, file: Path) -> "tuple[subprocess.Popen[bytes], Channel]":
        """Start the process; returns it and the connection to it."""
        ours, theirs = socket.socketpair()
        outgoing, incoming = (os.memfd_create("fairlead-tensors", os.MFD_CLOEXEC) for _ in range(2))
        fds = (theirs.fileno(), incoming, outgoing)  # the server's outgoing memory is the worker's incoming
        process = subprocess.Popen(
            [*interpreter(), "-u", "-m", "serving_runtime.backends.python.worker", str(file), *map(str, fds)],
            pass_fds=fds,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        theirs.close()
        return process, Channel(ours, (outgoing, incoming))

    @property
    def resident_bytes(self) -> int:
        """Return the process's resident memory, 0 where it has ended."""
        try:
            pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGESIZE")

    @property
    def alive(self) -> bool:
        return not self._ended

    def ask(self, message: Mapping[str, Any], timeout_s: float | None = None) -> dict[str, Any]:
        """Run a command that is no inference request, and return its result.

        Raises ModelError with the error of the model's code, or where the process ends.
        """
        try:
            self._send(dict(message))
            reply = self._replies.get(timeout=timeout_s)
        except (ChannelClosedError, queue.Empty) as error:
            raise ModelError(f"its worker process {self._end()} in {message['do']}()") from error
        if reply["do"] == "failed":
            raise ModelError(reply["message"])
        if reply["do"] == "ended":
            raise ModelError(f"its worker process {self._end()} in {message['do']}()")
        self._started = self._started or message["do"] == "initialize"
        return reply

    def execute(self, requests: Sequence[Asking], *, explain: bool = False) -> list[int]:
        """Run requests as one batch; returns the numbers that identify them for `cancel` and `taken`."""
        numbers = [next(_numbers) for _ in requests]
        with self._lock:
            ended = self._ended
            if not ended:
                self._pending.update(zip(numbers, [request.on_response for request in requests], strict=True))
        content = [
            {**request.content, "number": number, "inputs": len(request.inputs)}
            for number, request in zip(numbers, requests, strict=True)
        ]
        tensors = [tensor for request in requests for tensor in request.inputs]
        if ended:
            for request in requests:
                request.on_response(self._lost())
            return numbers
        with contextlib.suppress(ChannelClosedError):  # the receiving thread wakes those that wait
            self._send({"do": "execute", "requests": content, "explain": explain}, tensors)
        return numbers

    def cancel(self, number: int) -> None:
        """Cancel a request: its client has gone."""
        self._send_later({"do": "cancel", "number": number})

    def taken(self, number: int) -> None:
        """Let the model send another response."""
        self._send_later({"do": "taken", "number": number})

    def end(self, why: str) -> None:
        """Kill the process at once; `why` is part of a sentence."""
        self._why = self._why or why
        self._process.kill()

    def stop(self) -> None:
        """Finalize the model and end the process, in any state; returns when it has ended."""
        self._stopping = True
        if self._started and self._process.poll() is None:
            try:
                self.ask({"do": "finalize"}, self.finalize_s)
            except ModelError as error:
                logger.warning("%s: finalize failed: %s", self._where, error)
        self._channel.shut()
        self._outbox.put(None)
        self._kill()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()
        self._channel.close()

    def _send(self, message: dict[str, Any], tensors: Sequence[Tensor] = ()) -> None:
        """Send a message; raises ChannelClosedError."""
        self._channel.send(message, tensors)

    def _send_later(self, message: dict[str, Any], tensors: Sequence[Tensor] = ()) -> None:
        """Queue a message for sending, without blocking: the event loop calls this too."""
        self._outbox.put((message, tensors))

    def _answer_call(self, message: dict[str, Any], tensors: Sequence[Tensor]) -> None:
        self._send_later({**message, "do": "answer"}, tensors)

    def _answer_metric(self, message: dict[str, Any]) -> None:
        self._send_later({**message, "do": "answer"})

    def _send_orders(self) -> None:
        with contextlib.suppress(ChannelClosedError):
            while (order := self._outbox.get()) is not None:
                self._send(*order)
                del order  # its tensors are the worker's now

    def _kill(self) -> None:
        """Kill the process and all its descendants."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def _receive(self) -> None:
        with contextlib.suppress(ChannelClosedError):
            self._take_all()
        if not self._stopping:
            try:
                self._process.wait(_LAST_S)  # the error names how it ended
            except subprocess.TimeoutExpired:
                self._kill()
        with self._lock:
            self._ended = True
            pending, self._pending = self._pending, {}
        self._calls.lost(self)
        self._replies.put({"do": "ended"})
        if pending:
            lost = self._lost()
            for on_response in pending.values():
                on_response(lost)
        if not self._stopping:
            self._on_end(self)

    def _take_all(self) -> None:
        """Take messages until the process ends; raises ChannelClosedError."""
        while True:
            self._take(*self._channel.receive())

    def _take(self, message: dict[str, Any], tensors: list[Tensor]) -> None:
        match message["do"]:
            case "responses":
                remaining = iter(tensors)
                for content in message["responses"]:
                    self._respond(content, [next(remaining) for _ in range(content.get("outputs", 0))])
            case "log":
                for line in message["text"].splitlines():
                    logger.log(_LEVELS[message["level"]], "%s: %s", self._where, line)
            case "metric":
                own_metrics.take(OWN, self._calls, message, self._answer_metric)
            case "infer" | "ready":
                self._calls.serve(self, self._answer_call, message, tensors)
            case _:
                self._replies.put(message)

    def _respond(self, content: Mapping[str, Any], outputs: list[Tensor]) -> None:
        number, final = content["number"], content["final"]
        with self._lock:
            on_response = self._pending.pop(number, None) if final else self._pending.get(number)
        if on_response is None:
            return
        error = error_from(content["error"]) if "error" in content else None
        has_outputs = "outputs" in content and error is None
        on_response(Response(outputs if has_outputs else None, error, content.get("parameters", NO_PARAMETERS), final))

    def _lost(self) -> Response:
        return Response(None, BackendError(f"{self._where}: its worker process {self._end()}; it is started again"))

    def _end(self) -> str:
        """Return how the process ended, in words."""
        if self._why:
            return self._why
        code = self._process.poll()
        if code is None:
            return "did not answer"
        if code < 0:
            return f"was ended by {signal.Signals(-code).name}"
        return f"ended with exit code {code}"

    def _log_output(self) -> None:
        stream = self._process.stdout
        assert stream is not None  # noqa: S101 - asked for above
        with stream:
            while line := stream.readline(_LONGEST_LINE):
                self._log(line)

    def _log(self, line: bytes) -> None:
        logger.info("%s: %s", self._where, line.decode("utf-8", "replace").rstrip())
