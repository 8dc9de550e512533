"""Checker child: a forked process that confines itself to one model, answers one question about it, and ends.

By Landlock and seccomp, on top of what its parent is confined to, it reads the libraries and this model's folder,
writes nothing but its answer into a pipe, has no sockets, starts no process, and reaches none by a signal or a limit.
It is the kernel's first choice when memory is short.
"""

import ctypes
import json
import os
import resource
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from serving_runtime.common.errors import ServingError
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.inspection.answers import answer
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.shared import landlock, seccomp, single_process

ALONE = 75
"""Exit code for a model that needs a process of its own: only graphs that ONNX Runtime opens are answered here."""
_BACKEND = "onnxruntime"
_FAILED = 70
_NO_NEW_PRIVILEGES = 38  # prctl: PR_SET_NO_NEW_PRIVS
_SYSTEM = ("/bin", "/etc/ld.so.cache", "/etc/localtime", "/lib", "/lib32", "/lib64", "/proc", "/sys", "/usr")
_DEVICES = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


def become(question: str, folder: Path, pipe: int, cpu_s: int) -> NoReturn:
    """End this process with the answer in `pipe`.

    Args:
        folder: the model's.
        cpu_s: limit of processor time.
    """
    code = _FAILED
    try:
        _leave_files(pipe)
        _limit(cpu_s)
        confine(folder)
        code, document = _answered(question, folder)
        _write(pipe, json.dumps(document).encode())
    finally:
        os._exit(code)


def _answered(question: str, folder: Path) -> tuple[int, dict[str, object]]:
    settings = LoadSettings()
    if not _is_graph(folder, settings):
        return ALONE, {}
    return answer(question, folder, settings)


def _is_graph(folder: Path, settings: LoadSettings) -> bool:
    """Return whether ONNX Runtime opens the model, or none does as its configuration is refused."""
    try:
        plan = load_model.plan(repository.model_folder(folder), settings)
        is_ensemble = plan.written.HasField("ensemble_scheduling")
        return not is_ensemble and load_model.backend_name(plan, plan.versions[-1], settings) == _BACKEND
    except ServingError:
        return True


def confine(folder: Path) -> None:
    """Confine this process for good; raises OSError where the kernel does not support all of it."""
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    landlock.restrict(read=[*_libraries(), str(folder)], listed=(), write=(), devices=_DEVICES, connect=False)
    seccomp.install(unix=False, connects=False, sockets=False)
    single_process.install()


def _libraries() -> list[str]:
    """Return the folders of libraries; of a checkout only the runtime's own package: other models may lie beside it."""
    own = find_spec("serving_runtime")
    packages = list(own.submodule_search_locations or ()) if own is not None else []
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    others = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path.startswith("/")]
    return [*_SYSTEM, sys.prefix, sys.base_prefix, *installed, *packages, *others]


def _leave_files(pipe: int) -> None:
    """Close all files but the pipe: standard output is the parent's way to the control plane."""
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, pipe)
    os.closerange(pipe + 1, os.sysconf("SC_OPEN_MAX"))


def _limit(cpu_s: int) -> None:
    for kind, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_FSIZE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # its parent, which goes on, has less


def _write(pipe: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(pipe, left) :]
