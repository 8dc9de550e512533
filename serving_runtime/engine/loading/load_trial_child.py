"""Load trial, child process: limits and confines itself, loads one model, runs it, answers with an error or null.

`load_trial_server` forks it; `load_trial` writes the question, reads the answer, and interprets its death by a signal.
"""

import base64
import contextlib
import ctypes
import dataclasses
import json
import os
import re
import resource
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime import proto
from serving_runtime.backends import registry
from serving_runtime.common.datatypes import BYTES
from serving_runtime.common.errors import ServingError
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.loading.load_trial import ANSWER, GRAPHS
from serving_runtime.engine.loading.warmup import probe_inputs
from serving_runtime.engine.memory.budget import NOT_ITS_OWN_BYTES, shown
from serving_runtime.engine.memory.process_memory import growth, mapped_bytes
from serving_runtime.shared import landlock, seccomp

_MEMORY_BYTES, _TIMES_FILE = 8 << 30, 16
_BESIDE_BYTES = 1 << 30
"""Address space beside a model's own memory: stacks of threads, reserves of arenas."""
_NO_MEMORY = re.compile(r"bad_alloc|allocate memory|bad allocation")
_SLOW_S = 0.1
_DIES_WITH_PARENT, _NO_NEW_PRIVILEGES = 1, 38  # prctl: PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS
_SYSTEM = ("/bin", "/etc/ld.so.cache", "/etc/localtime", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/usr")
_DEVICES = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


def try_one(question: Mapping[str, Any]) -> int:
    """Load the model that the question names, and write the answer to standard output; returns the exit code."""
    _limit(question["limit_s"])
    if question["parent"] != os.getppid():
        return 1
    try:
        backend = registry.find(question["backend"], None, question["settings"])
        _limit_memory(question)
        _confine(question["read"])  # its library has been imported already
        with growth() as grown:
            error = _load(backend, question)
    except ServingError as found:
        error = str(found)
    else:
        error = error or _greed(question, grown.peak_bytes or 0)
    sys.stdout.write(f"\n{ANSWER}{json.dumps(None if question['on_gpu'] else error)}\n")
    return 0


def _load(backend: Any, question: Mapping[str, Any]) -> str | None:
    """Load a model and run it; returns the error of a run that lacked memory."""
    config = proto.ModelConfig.FromString(base64.b64decode(question["config"]))
    file = Path(question["file"])
    options = dataclasses.replace(
        BackendOptions.from_message(config),
        op_libraries=tuple(map(Path, question["op_libraries"])),
        config=config,
        memory_bytes=question["memory_bytes"],
    )
    try:
        model = backend.load(file, options)
        if question["backend"] in GRAPHS:
            return None if _runs_zeros(model, config.max_batch_size) else _lacks_memory(question)
    except MemoryError:
        return _lacks_memory(question)
    _run_once(model)
    return None


def _limit(limit_s: float) -> None:
    """Limit this process: no core, no files, processor time; it ends with its parent, and is killed before it."""
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_CPU, (int(limit_s) + 1) * (os.cpu_count() or 1))
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # killed before the server when memory is short


def _limit_memory(question: Mapping[str, Any]) -> None:
    """Limit the address space: to twice a model's memory limit, since arenas double, or by the size of its file."""
    if question["backend"] in GRAPHS:
        most = mapped_bytes() + _BESIDE_BYTES + 2 * question["memory_bytes"]
    else:
        most = _MEMORY_BYTES + _TIMES_FILE * Path(question["file"]).stat().st_size
    _lower(resource.RLIMIT_AS, most)


def _lower(kind: int, most: int) -> None:
    hard = resource.getrlimit(kind)[1]
    allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (allowed, allowed))


def _confine(model: list[str]) -> None:
    """Restrict this process to Python's import paths and the model; skip what the kernel does not support."""
    libc = ctypes.CDLL(None)
    libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path.startswith("/")]
    with contextlib.suppress(OSError):
        landlock.restrict(
            read=[*_SYSTEM, sys.prefix, sys.base_prefix, *sys.path, *libraries, *model],
            listed=(),
            write=(),
            devices=_DEVICES,
            connect=False,
        )
    with contextlib.suppress(OSError):
        seccomp.install(unix=False, connects=False, sockets=False)


def _greed(question: Mapping[str, Any], took_bytes: int) -> str | None:
    """Return the error of a model that exceeds its memory limit."""
    most_bytes = question["memory_bytes"]
    if most_bytes is None or took_bytes <= most_bytes + NOT_ITS_OWN_BYTES:
        return None
    return (
        f"{Path(question['file']).name} took {shown(took_bytes)} of memory as it was loaded and first run, and all "
        f"models may take {shown(most_bytes)}; make it smaller, or raise --model-memory-budget-bytes"
    )


def _lacks_memory(question: Mapping[str, Any]) -> str:
    return (
        f"{Path(question['file']).name} lacks memory as it is loaded and first run on trial, and all models may take "
        f"{shown(question['memory_bytes'])}; make it smaller, or raise --model-memory-budget-bytes"
    )


def _runs_zeros(model: Any, most_rows: int) -> bool:
    """Return whether memory suffices for a server's first runs of zeros: one row, and a batch.

    Other errors of a run are no fault of the file: a model may refuse zeros.
    """
    started = time.monotonic()
    for rows in sorted({1, max(1, most_rows)}):
        if rows > 1 and time.monotonic() - started > _SLOW_S:
            break
        try:
            model.run(probe_inputs(model, rows))
        except ServingError as error:
            if _NO_MEMORY.search(str(error)):
                return False
    return True


def _run_once(model: Any) -> None:
    """Run a model on a row of zeros and one of NaN: compiled code follows a file's numbers only then."""
    (spec,) = model.signature.inputs
    rows = [0.0, float("nan")] if spec.datatype.dtype.kind == "f" else [0]
    if spec.datatype is BYTES:
        return  # the load itself has predicted a text
    with contextlib.suppress(ServingError):  # an estimator may refuse NaN
        for value in rows:
            model.run([np.full((1, spec.shape[1]), value, spec.datatype.dtype)])
