"""What code in a sandboxed worker tries: each returns where it came through, and raises OSError where it did not.

Sent to a worker as text, with the names that `around` sets before it.
"""

import ctypes
import json
import mmap
import os
import resource
import socket
import subprocess
from pathlib import Path
from typing import Any

AROUND: dict[str, Any] = {}
"""Paths and numbers of the test, set by the text that is sent."""

_libc = ctypes.CDLL(None, use_errno=True)


def _called(found: int) -> int:
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def _connected(family: int, kind: int, address: Any) -> None:
    with socket.socket(family, kind) as sock:
        sock.connect(address)


def _attached() -> None:
    _called(_libc.ptrace(16, AROUND["server"], None, None))


def _read_memory() -> None:
    maps = Path(f"/proc/{AROUND['server']}/maps").read_text()
    with Path(f"/proc/{AROUND['server']}/mem").open("rb") as memory:
        memory.seek(int(maps.split("-", 1)[0], 16))
        memory.read(1)


def _copied_memory() -> None:
    vector = (ctypes.c_void_p * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    _called(_libc.process_vm_readv(AROUND["server"], vector, 1, vector, 1, 0))


def _shared_memory() -> None:
    _called(_libc.shmget(0, 4096, 0o1600))


def _watched_folder() -> None:
    handle = _called(_libc.inotify_init1(0))
    _called(_libc.inotify_add_watch(handle, os.fsencode(AROUND["cache"]), 0xFFF))


def _took_memory(size_bytes: int) -> None:
    try:
        mmap.mmap(-1, size_bytes, flags=mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
    except (MemoryError, OverflowError) as error:
        raise OSError(str(error)) from error


def _environment_has(secret: str) -> None:
    if secret not in str(os.environ):
        raise OSError("it is not there")


ATTEMPTS = {
    "file of another model": lambda: Path(AROUND["other"]).read_bytes(),
    "folder of another model": lambda: os.listdir(Path(AROUND["other"]).parent),  # noqa: PTH208
    "other models": lambda: os.listdir(AROUND["cache"]),  # noqa: PTH208
    "catalog": lambda: os.listdir(AROUND["catalog"]),  # noqa: PTH208
    "users": lambda: Path("/etc/passwd").read_bytes(),
    "processes": lambda: os.listdir("/proc"),  # noqa: PTH208
    "environment of the server": lambda: Path(f"/proc/{AROUND['server']}/environ").read_bytes(),
    "command line of the server": lambda: Path(f"/proc/{AROUND['server']}/cmdline").read_bytes(),
    "files of the server": lambda: os.listdir(f"/proc/{AROUND['server']}/fd"),  # noqa: PTH208
    "own environment": lambda: _environment_has(AROUND["secret"]),
    "memory of the server": _read_memory,
    "copy of the server's memory": _copied_memory,
    "ptrace": _attached,
    "signal": lambda: os.kill(AROUND["server"], 0),
    "limit of the server": lambda: resource.prlimit(AROUND["server"], resource.RLIMIT_NOFILE, (0, 0)),
    "priority of the server": lambda: os.setpriority(os.PRIO_PROCESS, AROUND["server"], 19),
    "processors of the server": lambda: os.sched_setaffinity(AROUND["server"], {0}),
    "fetcher": lambda: _connected(socket.AF_UNIX, socket.SOCK_STREAM, AROUND["socket"]),
    "mode of the fetcher's socket": lambda: os.chmod(AROUND["socket"], 0),  # noqa: PTH101
    "times of a file": lambda: os.utime(AROUND["socket"]),
    "server over the network": lambda: _connected(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", AROUND["port"])),
    "datagram": lambda: _connected(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", AROUND["port"])),
    "netlink": lambda: _connected(socket.AF_NETLINK, socket.SOCK_RAW, (0, 0)),
    "own folder, to write": lambda: Path(AROUND["own"]).touch(),
    "temporary folder": lambda: Path("/tmp/made-by-a-model").touch(),
    "shared memory folder": lambda: Path("/dev/shm/made-by-a-model").touch(),
    "memory without a limit": lambda: os.memfd_create("large"),
    "shared memory": _shared_memory,
    "more memory than it may have": lambda: _took_memory(64 << 30),
    "watch of a folder": _watched_folder,
    "process": os.fork,
    "program": lambda: subprocess.run(["true"], check=False),
    "life after the server": lambda: _called(_libc.prctl(1, 0, 0, 0, 0)),
    "namespace": lambda: _called(_libc.unshare(0x10000000)),
}


def text(around: dict[str, Any]) -> str:
    """Return code that tries all, whose `found` is a JSON object: each attempt's error, empty where it came through."""
    source = Path(__file__).read_text(encoding="utf-8").split("\ndef text(")[0]
    tries = (
        "found = {}\n"
        "for name, attempt in ATTEMPTS.items():\n"
        "    try:\n"
        "        attempt()\n"
        "        found[name] = ''\n"
        "    except OSError as error:\n"
        "        found[name] = f'{type(error).__name__}: {error}'\n"
        "found = json.dumps(found)\n"
    )
    return f"{source}\nAROUND.update(json.loads({json.dumps(json.dumps(around))}))\n{tries}"
