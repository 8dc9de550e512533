"""Network namespace of a test process: a loopback device, ports and addresses that no other test run sees.

`tests/conftest.py` enters one before anything else, so each worker of pytest-xdist has its own: fixed ports (8080 of a
control plane and of Envoy Gateway) and addresses of pods never clash, and workers and test runs go side by side. What a
test starts is in the namespace of its worker. Nothing outside the machine can be reached from it; `outside` runs what
fetches from a package index.

Where the process may not make a namespace (not root, not Linux), or `FAIRLEAD_TEST_NETWORK=machine` is set (to open a
test's page in a browser, or for containers of an engine outside), tests stay in the machine's own network, and those
with fixed ports take turns (`fixed_ports`).
"""

import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager

from tests.servers.parts import cache

_MACHINE = "FAIRLEAD_TEST_MACHINE_NETWORK"
"""The machine's own network namespace, as a path: of the first process of a test run, which outlives its workers."""
_CLONE_NEWNET = 0x40000000
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_IFREQ = "16sH14x"
_state = {"isolated": False}


def isolate() -> bool:
    """Move this process into a network namespace of its own; returns whether it could.

    Only the calling thread moves, and the threads and processes that it starts from then on: call it first.
    """
    if os.environ.get("FAIRLEAD_TEST_NETWORK") == "machine":
        return False
    machine = os.open("/proc/self/ns/net", os.O_RDONLY) if os.path.exists("/proc/self/ns/net") else -1  # noqa: PTH110
    unshare = getattr(ctypes.CDLL(None, use_errno=True), "unshare", None)
    if machine < 0 or unshare is None or unshare(_CLONE_NEWNET) != 0:
        return False
    os.environ.setdefault(_MACHINE, f"/proc/{os.getpid()}/fd/{machine}")
    os.environ["NO_GCE_CHECK"] = "true"  # Google's library would look for its metadata server for half a minute
    _raise_loopback()
    _state["isolated"] = True
    return True


def is_isolated() -> bool:
    """Return whether this process has a network of its own."""
    return _state["isolated"]


def outside(*command: str) -> list[str]:
    """Return the command line that runs a command in the machine's own network, where package indexes are."""
    return ["nsenter", f"--net={os.environ[_MACHINE]}", *command] if _state["isolated"] else [*command]


@contextmanager
def fixed_ports() -> Iterator[None]:
    """Let this process listen at fixed ports inside the block; without a network of its own it waits for its turn."""
    if _state["isolated"]:
        yield
        return
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "fixed-ports.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        flags = struct.unpack(_IFREQ, fcntl.ioctl(control, _SIOCGIFFLAGS, struct.pack(_IFREQ, b"lo", 0)))[1]
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack(_IFREQ, b"lo", flags | _IFF_UP))
