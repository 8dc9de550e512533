"""Load trial, fork server: has the libraries imported, and forks two processes for each trial.

    python -m serving_runtime.engine.loading.load_trial_server LINK

    server --(a socket for each trial)--> fork server --fork--> monitor --fork--> child: loads and runs the model
      '----------- question, answer -------------------------------'

LINK is the number of an inherited Unix socket (SOCK_SEQPACKET) with one message for each trial: a byte, and the socket
that has the question and gets `{"code": exit code or minus signal, "output": text}`; the code is null where the time
was over. Ends with its server, or once it has had nothing to do for a minute.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from serving_runtime.backends import registry
from serving_runtime.engine.loading import load_trial_child

_IDLE_S = 60.0
_MOST_OUTPUT = 1 << 20
_DIES_WITH_PARENT = 1  # prctl: PR_SET_PDEATHSIG


def main() -> int:
    """Fork for each trial that LINK brings."""
    link = socket.socket(fileno=int(sys.argv[1]))
    link.settimeout(_IDLE_S)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # killed before the server when memory is short
    registry.find("onnxruntime", None, {})
    while True:
        try:
            message, sockets, _, _ = socket.recv_fds(link, 1, 1)
        except TimeoutError:
            return 0
        if not message:
            return 0
        for number in sockets:
            trial = socket.socket(fileno=number)
            if os.fork() == 0:
                _end_after(_monitor, link, trial)
            trial.close()


def _end_after(work: Any, *given: Any) -> None:
    """End this process after some work: nothing of the process that forked it goes on here."""
    try:
        work(*given)
    finally:
        os._exit(1)


def _monitor(link: socket.socket, trial: socket.socket) -> None:
    """Fork the child of one trial, and answer with what became of it."""
    link.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    with trial.makefile("rb") as asked:
        question = json.loads(asked.read())
    reader, writer = os.pipe()
    question["parent"] = os.getpid()
    child = os.fork()
    if child == 0:
        os.close(reader)
        trial.close()
        _end_after(_child, question, writer)
    os.close(writer)
    output, code = _ending(child, reader, question["limit_s"])
    trial.sendall(json.dumps({"code": code, "output": output.decode(errors="replace")}).encode())
    os._exit(0)


def _child(question: dict[str, Any], writer: int) -> None:
    """Load the model with standard output alone."""
    null = os.open(os.devnull, os.O_RDWR)
    for number, to in ((null, 0), (writer, 1), (null, 2)):
        os.dup2(number, to)
    os.close(null)
    os.close(writer)
    code = load_trial_child.try_one(question)
    sys.stdout.flush()
    os._exit(code)


def _ending(child: int, reader: int, limit_s: float) -> tuple[bytes, int | None]:
    """Return what a child wrote and how it ended; one whose time is over is killed."""
    os.set_blocking(reader, False)
    ends = time.monotonic() + limit_s
    output, has_ended = bytearray(), os.pidfd_open(child)
    waiting = [has_ended, reader]
    while has_ended in waiting and (left := ends - time.monotonic()) > 0:
        ready, _, _ = select.select(waiting, [], [], left)
        if reader in ready and not _take(reader, output):
            waiting.remove(reader)  # it closed its output, and may go on
        if has_ended in ready:
            waiting.remove(has_ended)
    is_late = has_ended in waiting
    if is_late:
        os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    while _take(reader, output):
        pass
    return bytes(output), None if is_late else code


def _take(reader: int, output: bytearray) -> bool:
    """Add what there is to the output, whose beginning is dropped where it is long; return whether there was any."""
    try:
        found = os.read(reader, 1 << 16)
    except BlockingIOError:
        return False
    output += found
    del output[:-_MOST_OUTPUT]
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
