"""Sandboxed launcher: applies the sandbox of `policy.Launch`, then becomes the program, which ends with its parent.

    python -I -S launch.py LAUNCH_AS_JSON PROGRAM [ARGUMENT ...]

It replaces a `preexec_fn`, which is unsafe in a process with threads. A kill -9 of the parent takes the program with
it. A program with its own process ids is a grandchild: see `processes`. The order matters: its cgroup first, so that
all that follows counts there; namespaces (by `bubblewrap` where this process may make none), which the rest forbids; no
new privileges; files; system calls last.
"""

# Every start of a model waits for this, and pathlib takes longer to import than all of it.
# ruff: noqa: PTH100, PTH109, PTH112, PTH118, PTH120, PTH123, PTH208

import ctypes
import os
import resource
import signal
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace

if __name__ == "__main__":
    _root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    sys.path[:0] = [_root, os.path.join(_root, "..")]  # of a wheel both packages are in the first, of a checkout not

from integrations.sandbox import bubblewrap, namespaces, processes
from integrations.sandbox.policy import Launch, Mode, Sandbox
from serving_runtime.shared import landlock, privileges, seccomp

_PR_SET_PDEATHSIG = 1
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROCESSES = 4096
_OUT_OF_MEMORY = "500"  # of 1000
_ACCELERATORS = ("nvidia", "dri", "accel", "kfd")
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_SYSTEM, _PROC = ("/sys",), "/proc"
NOT_POSSIBLE = 77
"""The exit code where the sandbox is required and this machine does not support it."""
REFUSAL = "FAIRLEAD_SANDBOX is required, and this machine cannot give all of it: "

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    launch, command = Launch.from_json(sys.argv[1]), sys.argv[2:]
    if launch.group:
        _enter(launch.group)
    if launch.folder:
        os.chdir(launch.folder)
    for name, most in launch.limits.items():
        _limit(getattr(resource, f"RLIMIT_{name.upper()}"), most)
    missing: list[str] = []
    report = None
    if launch.sandbox is not None:
        _prefer_for_out_of_memory()
    if launch.sandbox is None or launch.mode is Mode.OFF:
        _die_with(launch.parent)
    else:
        missing, report = enclose(launch, launch.sandbox, command)
    if missing and launch.mode is Mode.REQUIRED:
        print(f"{REFUSAL}{'; '.join(missing)}", file=sys.stderr)  # noqa: T201 - the program's log
        sys.exit(NOT_POSSIBLE)
    if report is not None:
        processes.start_program(report)
    os.execvp(command[0], command)  # noqa: S606


def enclose(launch: Launch, wall: Sandbox, command: Sequence[str]) -> tuple[list[str], int | None]:
    """Sandbox this process; returns what this machine does not support, as parts of a sentence.

    With its own process ids it returns in another process; the second value is then for `start_program`.

    Raises:
        OSError: the machine made namespaces and then refused a mount in them.
    """
    missing = []
    folder = os.getcwd()
    devices = [*_DEVICES, *accelerators(os.listdir("/dev"))]
    shared = [_SHARED_MEMORY] if wall.shared_memory else []
    report = None
    own = launch.enclosed
    if own:
        bubblewrap.leave_signals()
        _die_with(os.getppid())
    else:
        try:
            namespaces.enter(network=wall.network.own, processes=wall.own_processes)
            own = True
        except OSError as error:
            if bubblewrap.works():
                _enclose_by_bubblewrap(launch, wall, command, devices)
            missing.append(f"namespaces: {error.strerror or error}")
        _die_with(launch.parent)
        if own:
            report = processes.become_first() if wall.own_processes else None
            seen = [*wall.read, *wall.write, *devices, *_SYSTEM, *shared]
            if not namespaces.see_only(seen, own_shared_memory=not shared, own_processes=wall.own_processes):
                missing.append("processes: /proc may not be mounted, as parts of it are hidden")
            os.chdir(folder if os.path.isdir(folder) else "/")
    if own:
        _limit(resource.RLIMIT_NPROC, _PROCESSES)  # of its own user namespace; Linux lets root have any number
        shared = [_SHARED_MEMORY]
    privileges.give_up()
    connects = wall.network.connects or (own and wall.network.own)
    try:
        landlock.restrict(
            read=[*wall.read, *_SYSTEM, _PROC],
            listed=wall.listed,
            write=[*wall.write, *shared],
            devices=devices,
            connect=connects,
        )
    except OSError as error:
        missing.append(f"files: {error.strerror or error}")
    try:
        seccomp.install(unix=own, connects=connects)
    except OSError as error:
        missing.append(f"system calls: {error.strerror or error}")
    if not connects and landlock.version() < landlock.CONNECT:
        missing.append("connections: Landlock refuses them since Linux 6.7")
    return missing, report


def _enclose_by_bubblewrap(launch: Launch, wall: Sandbox, command: Sequence[str], devices: Sequence[str]) -> None:
    """Become bubblewrap, which starts this launcher again in namespaces."""
    own = [os.path.dirname(os.path.abspath(file)) for file in (bubblewrap.__file__, landlock.__file__)]
    packages = [os.path.join(os.path.dirname(folder), "__init__.py") for folder in own]
    python = [sys.executable, os.path.realpath(sys.executable), sys.prefix, sys.base_prefix]
    around = bubblewrap.arguments(
        wall, system=[*_SYSTEM, *own, *packages, *python], devices=devices, folder=os.getcwd()
    )
    again = replace(launch, enclosed=True, folder="", group="", limits={})
    bubblewrap.become([*around, sys.executable, "-I", "-S", os.path.abspath(__file__), again.to_json(), *command])


def _enter(group: str) -> None:
    """Enter a cgroup through its `cgroup.procs` file."""
    try:
        with open(group, "w", encoding="ascii") as file:
            file.write("0")
    except OSError as error:
        sys.exit(f"the cgroup that limits the memory of this program cannot be entered: {error.strerror}")


def _prefer_for_out_of_memory() -> None:
    """Make this process the kernel's first choice, before the platform's, when it kills for memory."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(_OUT_OF_MEMORY)
    except OSError:  # /proc is not to be written here: all are alike then
        return


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    value = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (value, value))


def _die_with(parent: int) -> None:
    if sys.platform == "linux":
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)


def accelerators(names: Iterable[str]) -> list[str]:
    """Return the accelerator devices among the names in /dev, with their folders: nvidia-caps has MIG's."""
    return [f"/dev/{name}" for name in names if name.startswith(_ACCELERATORS)]


if __name__ == "__main__":
    main()
