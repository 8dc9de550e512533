"""Sandboxed worker process, server side: all that it says may be a lie, and it may do anything at any time.

It has one socket to the server, over which it sends checked messages of bounded size (`wire.untrusted`), at a bounded
rate, and only answers to the server's requests. Its calls of other models and custom metrics are refused. It is killed
for anything else, and where it takes too long.
"""

import os
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from serving_runtime.backends.python.calls import CallServer
from serving_runtime.backends.python.process import WorkerProcess
from serving_runtime.backends.python.watch import WATCH
from serving_runtime.backends.python.wire.channel import Channel, ChannelClosedError
from serving_runtime.backends.python.wire.failures import failure_from
from serving_runtime.backends.python.wire.untrusted import MalformedMessageError
from serving_runtime.common.errors import ModelError, Unsupported
from serving_runtime.common.isolation import interpreter
from serving_runtime.common.request import Tensor

START_S = 60.0
"""How long importing and initializing a model may take."""
FINALIZE_S = 2.0

_SEND_S = 5
_BYTES_PER_S = 64 << 10
_MESSAGE_BYTES = 512
_MOST_TEXT = 4096
_PASSED_ON = ("LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "PATH", "TZ")
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_NEITHER = "models of a pool neither call other models nor have metrics of their own"


class SandboxedWorker(WorkerProcess):
    """A process that runs one instance of an untrusted model.

    Args:
        memory_bytes: limit of its memory, beside Python and its libraries.
    """

    finalize_s = FINALIZE_S

    def __init__(
        self,
        file: Path,
        where: str,
        calls: CallServer,
        on_end: Callable[[WorkerProcess], None],
        *,
        memory_bytes: int,
    ) -> None:
        self._memory_bytes = memory_bytes
        self._awaits_reply = False
        self._pace = _Pace()
        super().__init__(file, where, calls, on_end)
        self.pid = self._process.pid
        WATCH.watch(self)

    @property
    def oldest(self) -> int | None:
        """Return the number of its oldest unanswered request."""
        with self._lock:
            return next(iter(self._pending), None)

    def ask(self, message: Mapping[str, Any], timeout_s: float | None = None) -> dict[str, Any]:
        with self._lock:
            self._awaits_reply = True
        limit_s = timeout_s or START_S
        try:
            return super().ask(message, limit_s)
        except ModelError:
            if self._awaits_reply and self._process.poll() is None and not self._why:  # killed by its caller
                raise ModelError(f"its worker process did not end {message['do']}() within {limit_s:g} s") from None
            raise

    def _begin(self, file: Path) -> "tuple[subprocess.Popen[bytes], Channel]":
        ours, theirs = socket.socketpair()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _SEND_S, 0))
        command = [*interpreter(), "-P", "-u", "-m", "serving_runtime.backends.python.worker.sandboxed"]
        process: subprocess.Popen[bytes] = WATCH.run(
            lambda: subprocess.Popen(
                [*command, str(file.absolute()), *map(str, (theirs.fileno(), self._memory_bytes, os.getpid()))],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd="/",
                env=environment(os.environ),
            )
        )
        theirs.close()
        channel = Channel(ours, None, trusted=False)
        channel.awaits_tensors = lambda: self.oldest is not None
        return process, channel

    def _send(self, message: dict[str, Any], tensors: Sequence[Tensor] = ()) -> None:
        try:
            super()._send(message, tensors)
        except ChannelClosedError:
            if self._process.poll() is None and not self._stopping:
                self.end("was ended, since it took no messages")
            raise

    def _kill(self) -> None:
        self._process.kill()  # it has no descendants
        self._pace.end()
        self._process.wait()

    def _take_all(self) -> None:
        try:
            super()._take_all()
        except ChannelClosedError:
            raise
        except MalformedMessageError as error:
            self.end(f"was ended, since it sent {error}")
        except Exception as error:
            self.end(f"was ended, since it sent what cannot be read ({type(error).__name__})")

    def _take(self, message: dict[str, Any], tensors: list[Tensor]) -> None:
        match message["do"]:
            case "responses":
                numbers = [response["number"] for response in message["responses"]]
                with self._lock:
                    are_pending = len(set(numbers)) == len(numbers) and all(each in self._pending for each in numbers)
                if not are_pending:
                    raise MalformedMessageError("a response to no request")
                for response in message["responses"]:
                    if "error" in response:
                        response["error"]["message"] = response["error"]["message"][:_MOST_TEXT]
            case "log":
                self._pace.wait(self._channel.header_bytes)
            case "done" | "failed":
                with self._lock:
                    awaited, self._awaits_reply = self._awaits_reply, False
                if not awaited:
                    raise MalformedMessageError("an answer to no question")
                if "message" in message:
                    message["message"] = message["message"][:_MOST_TEXT]
            case _:
                self._pace.wait(self._channel.header_bytes)
                self._refuse(message)
                return
        super()._take(message, tensors)

    def _refuse(self, message: Mapping[str, Any]) -> None:
        if "call" in message:
            error = failure_from(Unsupported(_NEITHER))
            answer = {"error": error, "ready": False, "problem": _NEITHER, "value": 0.0, "final": True}
            self._send_later({**answer, "call": message["call"], "do": "answer"})

    def _log(self, line: bytes) -> None:
        self._pace.wait(len(line))
        super()._log(line)


class _Pace:
    """Bounds what a worker makes the server do unasked: so many bytes a second, and those of one second at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._free_at = 0.0
        self._over = threading.Event()

    def wait(self, size_bytes: int) -> None:
        """Return when so many bytes more may be worked on, or at the end."""
        with self._lock:
            now = time.monotonic()
            self._free_at = max(now, self._free_at) + (size_bytes + _MESSAGE_BYTES) / _BYTES_PER_S
            wait_s = self._free_at - now - 1
        if wait_s > 0:
            self._over.wait(wait_s)

    def end(self) -> None:
        self._over.set()


def environment(given: Mapping[str, str]) -> dict[str, str]:
    """Return a worker's environment: nothing of the server's but what Python and libraries need."""
    package = str(Path(__file__).parents[3])
    found = {name: given[name] for name in _PASSED_ON if name in given}
    found.update(dict.fromkeys(_ONE_THREAD, "1"))
    if not sys.flags.isolated:
        found["PYTHONPATH"] = package
    return {**found, "HOME": "/", "PYTHONDONTWRITEBYTECODE": "1", "MALLOC_ARENA_MAX": "2"}
