"""Checker: one process that answers questions about many models, each by a forked child that ends with its answer.

    control plane --{"question", "model", "limit_s"}--> checker --fork--> child: confines itself, opens the model
                  <--{"exit_code", "size"}, the bytes--         <--bytes--'

    python -m serving_runtime.engine.inspection.checker

Interpreter and libraries are started once. The checker opens no model and reads nothing in an answer: it counts the
bytes and passes them on. Children run one after the other, and none can start a process: when one ends, nothing of its
model is left. What a child does to itself (a crash, a hang, all memory) is the end of one answer.
"""

import gc
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from serving_runtime.backends import registry
from serving_runtime.engine.inspection import checker_child
from serving_runtime.engine.inspection.answers import QUESTIONS
from serving_runtime.engine.memory import resident_pages

SCHEMA = "fairlead.checker/v1"
TIMED_OUT = 124
MOST_BYTES = 4 << 20
"""Limit of one answer; a child that writes more is ended."""
_LEAVES_WITHIN_S = 2.0
_PIECE_BYTES = 1 << 16


def main() -> int:
    """Answer orders from standard input until its end; returns the exit code."""
    registry.find("onnxruntime", None, {})
    gc.collect()
    gc.freeze()  # a collection in a child would copy all pages of the libraries' objects
    mapped = resident_pages.of_files()
    orders, answers = sys.stdin.buffer, sys.stdout.buffer
    _send(answers, {"schema": SCHEMA})
    for line in orders:
        if len(os.listdir("/proc/self/task")) != 1:  # noqa: PTH208 - a fork with other threads may copy a held lock
            sys.stderr.write("the checker has threads of its own, so it may not fork\n")
            return 1
        order = json.loads(line)
        if order["question"] not in QUESTIONS:
            sys.stderr.write(f"the checker does not know the question {order['question']!r}\n")
            return 1
        code, content = ask(order["question"], Path(order["model"]), float(order["limit_s"]), mapped)
        _send(answers, {"exit_code": code, "size": len(content)}, content)
    return 0


def ask(question: str, folder: Path, limit_s: float, mapped: resident_pages.Ranges = ()) -> tuple[int, bytes]:
    """Return exit code and answer of a child; `TIMED_OUT` at the limit, -N for signal N.

    Args:
        mapped: pages of libraries that do not count as the model's memory.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resident_pages.map_in(mapped)
        checker_child.become(question, folder, writing, round(limit_s * (os.cpu_count() or 1)) + 1)
    os.close(writing)
    watched = os.pidfd_open(child)
    try:
        deadline = time.monotonic() + limit_s
        content, is_whole = _content(reading, deadline)
        leaves_by = min(deadline, time.monotonic() + _LEAVES_WITHIN_S) if is_whole else 0.0
        if select.select([watched], [], [], max(0.0, leaves_by - time.monotonic()))[0]:
            is_late = False
        else:
            is_late = time.monotonic() >= deadline
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    finally:
        os.close(reading)
        os.close(watched)
    if is_late:
        code = TIMED_OUT
    return code, content if code in (0, 2) else b""


def _content(pipe: int, deadline: float) -> tuple[bytes, bool]:
    """Return what comes until the end of the pipe, and whether that came in time and within the limit."""
    pieces: list[bytes] = []
    size = 0
    while size <= MOST_BYTES and (left_s := deadline - time.monotonic()) > 0:
        if select.select([pipe], [], [], left_s)[0]:
            piece = os.read(pipe, _PIECE_BYTES)
            if not piece:
                return b"".join(pieces), True
            pieces.append(piece)
            size += len(piece)
    return b"", False


def _send(answers: BinaryIO, head: dict[str, object], content: bytes = b"") -> None:
    answers.write(json.dumps(head).encode() + b"\n" + content)
    answers.flush()


if __name__ == "__main__":
    sys.exit(main())
