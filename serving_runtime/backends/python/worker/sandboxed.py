"""`python -m serving_runtime.backends.python.worker.sandboxed FILE SOCKET MEMORY_BYTES PARENT`: for code of others.

    limits -> no capabilities -> Landlock: reads Python and its model's folder, writes nothing, sends no signals
           -> seccomp: no sockets, no processes, nothing of other processes -> the worker, which imports the model

It works inside the server's own sandbox too, where namespaces are not to be had. It ends without a word from the model
where a part of it is not possible. Standard library only, until the sandbox is complete.
"""

import contextlib
import ctypes
import os
import resource
import signal
import socket
import sys
from pathlib import Path

from serving_runtime.shared import landlock, privileges, seccomp

NOT_POSSIBLE = 77
"""The exit code where this machine does not support the whole sandbox."""
NICE = 5
"""Lowers its priority below that of the server's own threads."""

_PR_SET_PDEATHSIG = 1
_FILES = 256
_BESIDE_BYTES = 1 << 30
"""Address space of Python and libraries, beside the model's own memory."""
_SYSTEM = ("/bin", "/etc/ld.so.cache", "/etc/localtime", "/lib", "/lib32", "/lib64", "/usr")
_FIGURES = (
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/self",
    "/proc/stat",
    "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system",
)
_DEVICES = ("/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")


def main() -> None:
    """Confine this process, and serve until the server sends the end, or has gone."""
    file, connection, memory_bytes, parent = Path(sys.argv[1]), *map(int, sys.argv[2:])
    try:
        confine(file.parent.parent, memory_bytes, parent)
    except OSError as error:
        print(f"this machine cannot give the sandbox of a model in Python: {error}")  # noqa: T201 - the server's log
        sys.exit(NOT_POSSIBLE)
    from serving_runtime.backends.python.wire.channel import Channel  # noqa: PLC0415 - in the sandbox
    from serving_runtime.backends.python.worker.__main__ import serve  # noqa: PLC0415

    serve(file, Channel(socket.socket(fileno=connection), None))


def confine(folder: Path, memory_bytes: int, parent: int) -> None:
    """Sandbox this process for good; raises OSError where that is not possible.

    Args:
        folder: of the model, with its files and those of no other.
        memory_bytes: of its own memory.
        parent: the process with whose end this one ends.
    """
    problem = privileges.sandbox_lacks()
    if problem or len(list(Path("/proc/self/task").iterdir())) != 1:  # what follows concerns the calling thread
        raise OSError(problem or "it has threads already")
    _limit(memory_bytes)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        raise OSError("the server has ended")
    privileges.give_up()
    landlock.restrict(
        read=[*_SYSTEM, *_FIGURES, *python_paths(), str(folder)], listed=(), write=(), devices=_DEVICES, connect=False
    )
    seccomp.install(unix=False, connects=False, sockets=False, alone=True)


def python_paths() -> list[str]:
    """Return the paths of Python, installed packages and this package; folders around a checkout are not among them."""
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    libraries = [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path.startswith("/")]
    package = Path(__file__).resolve().parents[3]
    return [sys.prefix, sys.base_prefix, *installed, *libraries, str(package)]


def _limit(memory_bytes: int) -> None:
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes + _BESIDE_BYTES),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_NOFILE, _FILES),
    ):
        hard = resource.getrlimit(kind)[1]
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, allowed))
    os.nice(NICE)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")  # it is killed before the server when memory is short


if __name__ == "__main__":
    main()
