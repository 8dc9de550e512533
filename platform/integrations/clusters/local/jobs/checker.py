"""Checker on this machine: one sandboxed process that inspects and profiles many versions, one after the other.

It is `serving_runtime.engine.inspection.checker`, which forks a child for each question. Its folder holds the files of
one model at a time, so that no model can read another's. What it writes is read as a model's own words: by length, up
to a limit, within a time.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from common.errors import FairleadError
from integrations.artifacts.store import folder_of
from integrations.clusters.base import Job, JobKind, JobResult, Resources
from integrations.clusters.local.confinement import private
from integrations.clusters.local.jobs import jobs
from integrations.clusters.local.model_repository import lay_out
from integrations.clusters.local.runtime import RUNTIME, environment
from integrations.sandbox.policy import NetworkAccess
from serving_runtime.shared import landlock, seccomp

CHECKER = (*RUNTIME[:2], "-m", "serving_runtime.engine.inspection.checker")
SCHEMA = "fairlead.checker/v1"
_ONE_THREAD = {"ORT_DISABLE_TELEMETRY": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Libraries that start threads as they are imported: a process that forks has one."""
_STARTS_WITHIN_S, _ANSWERS_WITHIN_S, _ENDS_WITHIN_S = 30.0, 10.0, 2.0
_MOST_HEAD_BYTES, _MOST_BYTES, _PIECE_BYTES = 200, 4 << 20, 1 << 16
_ANSWERED = (0, 2)
_CHECKED = frozenset({JobKind.INSPECT, JobKind.PROFILE})


class _BrokenError(Exception):
    """The checker ended, or its answer is none."""


class Checker:
    """A running checker; `runs` is False once it cannot be used any more."""

    def __init__(self, process: "subprocess.Popen[bytes]", repositories: Path) -> None:
        assert process.stdin is not None, "it is started with pipes"  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        self._orders, self._answers = process.stdin, process.stdout
        self._repositories = repositories
        self._laid_out = ("", repositories)
        self._models = 0
        self._read = b""
        self.runs = True

    def greeted(self) -> bool:
        """Return whether it is ready."""
        try:
            self.runs = self._head(time.monotonic() + _STARTS_WITHIN_S) == {"schema": SCHEMA}
        except (_BrokenError, OSError):
            self.runs = False
        return self.runs

    def run(self, job: Job) -> JobResult | None:
        """Return the result of an inspection or a profile; None where the model has to have a process of its own.

        That is any but a graph that ONNX Runtime opens on this machine's processors, and one whose check failed here
        in another way than by time: the other process says more of it.
        """
        if not self.runs or job.kind not in _CHECKED or job.resources != Resources() or job.env or job.arguments:
            return None
        try:
            model = self._model(job)
        except (FairleadError, OSError):
            return None
        try:
            return self._answer(job, model)
        except (_BrokenError, OSError):
            self.runs = False
            return None

    def _model(self, job: Job) -> Path:
        """Return the folder of the model, the only one there; the next question is often about the same one."""
        what = json.dumps([job.artifact_uri, job.model_config])
        if self._laid_out[0] == what:
            return self._laid_out[1]
        shutil.rmtree(self._repositories / str(self._models), ignore_errors=True)
        self._models += 1
        model = self._repositories / str(self._models) / "model"
        self._laid_out = ("", model)
        lay_out(folder_of(job.artifact_uri), model, version="1", config=job.model_config)
        self._laid_out = (what, model)
        return model

    def _answer(self, job: Job, model: Path) -> JobResult | None:
        order = {"question": job.kind.value, "model": str(model), "limit_s": job.timeout_s}
        self._orders.write(json.dumps(order).encode() + b"\n")
        self._orders.flush()
        deadline = time.monotonic() + job.timeout_s + _ANSWERS_WITHIN_S
        head = self._head(deadline)
        code, size = head.get("exit_code"), head.get("size")
        if type(code) is not int or type(size) is not int or not 0 <= size <= _MOST_BYTES:
            raise _BrokenError
        output = self._exactly(size, deadline).decode(errors="replace")
        if code in _ANSWERED:
            return JobResult(code, output)
        return JobResult(code, "", jobs.timed_out(job)) if code == jobs.TIMED_OUT else None

    def _head(self, deadline: float) -> dict[str, object]:
        while b"\n" not in self._read:
            if len(self._read) > _MOST_HEAD_BYTES:
                raise _BrokenError
            self._read += self._piece(deadline)
        line, _, self._read = self._read.partition(b"\n")
        if len(line) > _MOST_HEAD_BYTES:
            raise _BrokenError
        try:
            head = json.loads(line)
        except ValueError:
            raise _BrokenError from None
        if not isinstance(head, dict):
            raise _BrokenError
        return head

    def _exactly(self, size: int, deadline: float) -> bytes:
        pieces, left = [self._read], size - len(self._read)
        while left > 0:
            pieces.append(self._piece(deadline))
            left -= len(pieces[-1])
        content = b"".join(pieces)
        self._read = content[size:]
        return content[:size]

    def _piece(self, deadline: float) -> bytes:
        looked = select.poll()  # select(2) takes no numbers of files beyond 1023
        looked.register(self._answers, select.POLLIN)
        is_ready = looked.poll(max(0.0, deadline - time.monotonic()) * 1000)
        piece = os.read(self._answers.fileno(), _PIECE_BYTES) if is_ready else b""
        if not piece:
            raise _BrokenError
        return piece


@contextmanager
def checker(folder: Path, timeout_s: float, *, program: tuple[str, ...] = CHECKER) -> Iterator[Checker | None]:
    """Yield a checker whose files lie below `folder`, and end it; None where this machine can have none.

    That is without Landlock or seccomp, which part the models, and where there are GPUs: models are checked on those.

    Args:
        timeout_s: the longest that one question will take.
    """
    has_gpus = any(Path("/dev").glob("nvidia*"))
    if has_gpus or landlock.version() < landlock.FILES or not seccomp.supported():
        yield None
        return
    with jobs.scratch_in(folder) as scratch:
        repositories, own = scratch / "repositories", scratch / "own"
        repositories.mkdir()
        own.mkdir()
        limits = jobs.limits(timeout_s, _MOST_BYTES)
        asked = jobs.enclosed(list(program), repositories, own, limits, network=NetworkAccess.NONE)
        env = {**environment({}, is_code=False), **private(own), **_ONE_THREAD}
        try:
            process = subprocess.Popen(
                asked,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                process_group=0,
                env=env,
            )
        except OSError:
            yield None
            return
        with process:
            try:
                found = Checker(process, repositories)
                yield found if found.greeted() else None
            finally:
                with suppress(OSError, subprocess.TimeoutExpired):
                    process.stdin and process.stdin.close()  # it ends by itself then
                    process.wait(timeout=_ENDS_WITHIN_S)
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
