"""PID namespace: all that a program starts ends with it, in its own session too: pid_namespaces(7).

    launcher --fork--> first process of the namespace, builds the wall --fork--> program
      waits; ends as the program did <---- status of its end, by a pipe ----'

The first process reaps orphans. The kernel kills the whole namespace when the first process ends, and that ends with
the launcher.
"""

import ctypes
import os
import resource
import select
import signal
import struct

_PR_SET_PDEATHSIG = 1
_STATUS = "=i"

_libc = ctypes.CDLL(None, use_errno=True)


def become_first() -> int:
    """Return in a child, the first process of the new namespace, a pipe for the status; the caller's process waits."""
    reading, writing = os.pipe()
    launcher = os.pidfd_open(os.getpid())
    first = os.fork()
    if first:
        os.close(writing)
        _end_as(_status_of(first, reading))
    os.close(reading)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if select.select([launcher], [], [], 0)[0]:  # it died before the line above
        os._exit(1)
    os.close(launcher)
    return writing


def start_program(report: int) -> None:
    """Return in a child, which becomes the program; the caller's process stays the first, and ends with it."""
    program = os.fork()
    if not program:
        return
    while True:
        ended, status = os.wait()
        if ended == program:
            os.write(report, struct.pack(_STATUS, status))
            os._exit(0)


def _status_of(first: int, reading: int) -> int:
    """Return the program's wait status, or that of the first process where no program ended."""
    found = os.read(reading, struct.calcsize(_STATUS))
    _, status = os.waitpid(first, 0)
    return int(struct.unpack(_STATUS, found)[0]) if found else status


def _end_as(status: int) -> None:
    """End this process by the same signal, or with the same exit code."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)
