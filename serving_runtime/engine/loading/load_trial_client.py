"""Load trial, the server's side of its fork server: starts it with the first trial, and again once it has ended."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_ANSWER_S = 30.0
"""Beside the time limit of a trial: the start of the fork server, and its answer."""
_SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}  # memory that is limited


class ForkServer:
    """Forks a process for each trial; several threads may ask at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._link: socket.socket | None = None

    def run(self, question: Mapping[str, Any]) -> tuple[int, str]:
        """Return the exit code, or minus the signal, of a child with this question, and what it wrote.

        Raises:
            TimeoutError: its time limit is over, and it was killed.
            OSError: no process can be started.
        """
        answer = self._asked(question) or self._asked(question)  # once more: it may have ended before it began
        if not answer:
            return -signal.SIGKILL, ""
        ended = json.loads(answer)
        if ended["code"] is None:
            raise TimeoutError
        return ended["code"], ended["output"]

    def _asked(self, question: Mapping[str, Any]) -> bytes:
        """Return the answer; empty where the fork server, or the monitor of this trial, has ended."""
        mine, its = socket.socketpair()
        with mine:
            with its:
                self._send(its)
            mine.settimeout(question["limit_s"] + _ANSWER_S)
            try:
                mine.sendall(json.dumps(question).encode())
                mine.shutdown(socket.SHUT_WR)
                with mine.makefile("rb") as answers:
                    return answers.read()
            except (BrokenPipeError, ConnectionResetError):
                return b""

    def _send(self, trial: socket.socket) -> None:
        """Give the fork server the socket of a trial; raises OSError where none can be started."""
        with self._lock:
            if self._link is not None:
                try:
                    socket.send_fds(self._link, [b"1"], [trial.fileno()])
                    return
                except (BrokenPipeError, ConnectionResetError):  # it has ended
                    self._link.close()
                    self._link = None
            self._link = _started()
            socket.send_fds(self._link, [b"1"], [trial.fileno()])


def _started() -> socket.socket:
    """Start a fork server, and return the link to it; it ends when that is closed."""
    mine, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-P", "-m", "serving_runtime.engine.loading.load_trial_server", str(its.fileno())]
    paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    with its:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_SINGLE, "PYTHONPATH": os.pathsep.join(paths)},
                pass_fds=[its.fileno()],
            )
        except OSError:
            mine.close()
            raise
    threading.Thread(target=process.wait, name="end of load trials", daemon=True).start()
    return mine


FORK_SERVER = ForkServer()
