"""Guard: a process that kills the programs' process groups once this one is gone, by SIGKILL too.

    parent --(pipe: +GROUP, -GROUP, end)--> guard --end of the pipe--> SIGKILL to the groups that are left --> exit

A child dies with its parent by itself, what it has started does not; and the agent's SIGKILL reaches this process's
group alone, because SIGTERM may not reach the programs before their requests are answered.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

_FIRST_DESCRIPTOR = 3
_END = b"end\n"


class Guard:
    """The guard as its parent sees it. Make it before threads and event loops."""

    def __init__(self) -> None:
        """Fork the guard."""
        read, self._write = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                _guard(read)
            finally:
                os._exit(0)
        os.close(read)

    def watch(self, group: int) -> None:
        """Have a process group killed at the parent's end; a child may call it for its own before its program runs."""
        self._send(b"+%d\n" % group)

    def forget(self, group: int) -> None:
        """Leave a process group alone: it has ended, and its number may be another's next."""
        self._send(b"-%d\n" % group)

    def close(self) -> None:
        """End the guard; its parent has killed all groups itself."""
        self._send(_END)
        os.close(self._write)
        os.waitpid(self._pid, 0)

    def _send(self, line: bytes) -> None:
        with suppress(BrokenPipeError):  # killed by a program
            os.write(self._write, line)  # shorter than PIPE_BUF: at once


def _guard(read: int) -> None:
    """Read groups to the end of the pipe, and kill those that are left."""
    os.setsid()
    for ignored in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)
    silent = os.open(os.devnull, os.O_RDWR)
    for number in range(_FIRST_DESCRIPTOR):
        os.dup2(silent, number)
    os.dup2(read, _FIRST_DESCRIPTOR)
    for number in sorted(int(link.name) for link in Path("/proc/self/fd").iterdir()):  # files of the parent
        if number > _FIRST_DESCRIPTOR:
            with suppress(OSError):  # that of the listing is closed already
                os.close(number)
    groups: set[int] = set()
    with os.fdopen(_FIRST_DESCRIPTOR, "rb") as lines:
        for line in lines:
            if line == _END:
                return
            group = int(line[1:])
            if line.startswith(b"+"):
                groups.add(group)
            else:
                groups.discard(group)
    for group in groups:
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
