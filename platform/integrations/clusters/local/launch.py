"""Becomes another program that ends when its parent does.

    python -I -S launch.py PARENT_PID [LIMIT=N ...] -- PROGRAM [ARGUMENT ...]

Started by `processes.py` and `jobs.py` in place of a `preexec_fn`, which is unsafe in a process with threads. A kill -9
of the agent then takes its gateway and its replicas with it. LIMIT is the name of a `resource.RLIMIT_…` in lower case.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    split = sys.argv.index("--")
    parent, *limits = sys.argv[1:split]
    program = sys.argv[split + 1 :]
    for limit in limits:
        name, _, value = limit.partition("=")
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (int(value), int(value)))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != int(parent):  # it died before the line above
            os._exit(1)
    os.execvp(program[0], program)  # noqa: S606


if __name__ == "__main__":
    main()
