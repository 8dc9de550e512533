"""Namespaces by bubblewrap, where it is installed and may make them although this process may not.

Ubuntu's AppArmor lets only known programs make user namespaces, bwrap(1) among them; elsewhere bwrap is setuid root. It
starts the launcher again, which then adds the rest of the sandbox:

    launcher --becomes--> bwrap --fork--> launcher, inside --becomes--> program
"""

# As in launch.py.
# ruff: noqa: PTH110

import os
import signal
from collections.abc import Iterable

from integrations.sandbox.policy import Sandbox

PROGRAM = "/usr/bin/bwrap"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_ASK_TO_END = (signal.SIGTERM, signal.SIGINT)
_ALONE = ("--unshare-user", "--unshare-ipc", "--die-with-parent", "--cap-drop", "ALL")


def works() -> bool:
    """Return whether bubblewrap is installed and makes namespaces here."""
    if not os.path.exists(PROGRAM):
        return False
    tried = [PROGRAM, *_ALONE, "--unshare-net", "--ro-bind", "/", "/", "true"]
    quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)]
    _, status = os.waitpid(os.posix_spawn(PROGRAM, tried, os.environ, file_actions=quiet), 0)
    return status == 0


def arguments(wall: Sandbox, *, system: Iterable[str], devices: Iterable[str], folder: str) -> list[str]:
    """Return bwrap's command line up to the program. Pure.

    Args:
        system: files and folders that it reads besides what is in `wall`.
        devices: files and folders of devices.
        folder: where the program starts, if it sees that.
    """
    read = dict.fromkeys([*wall.read, *system], "--ro-bind-try")
    write = dict.fromkeys(wall.write, "--bind-try")
    seen = {**read, **write, **dict.fromkeys(devices, "--dev-bind-try")}
    if wall.shared_memory:
        seen[_SHARED_MEMORY] = "--bind-try"
    shown: list[str] = []
    for path in sorted(seen):  # folders before what is in them
        above = [folder for folder in seen if path.startswith(f"{folder}/")]
        if not above or seen[max(above, key=len)] != seen[path]:
            shown += [seen[path], path, path]
    start = folder if any(folder == path or folder.startswith(f"{path}/") for path in seen) else "/"
    own = [] if wall.shared_memory else ["--perms", "1777", "--tmpfs", _SHARED_MEMORY]
    network = ["--unshare-net"] if wall.network.own else []
    processes = ["--unshare-pid", "--proc", "/proc"] if wall.own_processes else ["--bind", "/proc", "/proc"]
    return [PROGRAM, *_ALONE, *network, *shown, *processes, *own, "--chdir", start, "--"]


def become(command: list[str]) -> None:
    """Become bwrap, which ignores SIGTERM and SIGINT: its program gets them, too, and ends in its own time."""
    for number in _ASK_TO_END:
        signal.signal(number, signal.SIG_IGN)
    os.execv(command[0], command)  # noqa: S606


def leave_signals() -> None:
    """Restore the default action of SIGTERM and SIGINT for the program."""
    for number in _ASK_TO_END:
        signal.signal(number, signal.SIG_DFL)
