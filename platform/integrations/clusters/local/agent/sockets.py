"""Unix sockets of this machine's own processes, in folders that only this user may enter.

A replica's sockets are bound by the agent and inherited by its process, which sees no file of them: a model that takes
over its server can neither replace them by a link, through which the gateway would reach other sockets of this user,
nor find those of another replica.
"""

import hashlib
import os
import shutil
import socket
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from integrations.clusters.flags import value_of
from integrations.clusters.local.files import Layout
from integrations.clusters.local.holder.wire import FIRST_DESCRIPTOR
from integrations.clusters.local.runtime import environment

ENDPOINTS = ("http", "grpc", "metrics")
_LONGEST_PATH_BYTES = 107
"""Linux: unix(7), `sun_path` without its closing zero."""
_OFFERED = "fd:N"
"""Text in the --help of runtimes that take bound sockets."""
_HELP_S = 30.0


def short_folder(wanted: Path, longest: str) -> Path:
    """Return a folder for sockets with names of at most this length: the wanted one, or one with a short path.

    The second is made here, for this user alone.

    Raises:
        PermissionError: another user has made that folder, or may enter it.
    """
    if _fits(wanted / longest):
        return wanted
    own = f"fairlead-{os.getuid()}-{_short(os.fsencode(wanted))}"
    places = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]  # noqa: S108 - a folder of its own there
    folder = next(Path(place, own) for place in places if place and _fits(Path(place, own, longest)))
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise PermissionError(f"{folder} is not a folder that this user alone may enter; remove it")
    return folder


def replicas_folder(layout: Layout) -> Path:
    """Return the parent of the replicas' socket folders; raises PermissionError as `short_folder`."""
    return short_folder(layout.sockets, f"{_short(b'')}/{max(ENDPOINTS, key=len)}")


def folder_of(layout: Layout, name: str) -> Path:
    """Return the folder for the sockets of `name`, existing or not."""
    return replicas_folder(layout) / _short(name.encode())


def own_folder(layout: Layout, name: str) -> Path:
    """Return an empty folder for the sockets of `name`, replacing an earlier one."""
    folder = folder_of(layout, name)
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    return folder


class ReplicaSockets:
    """The sockets of one process of a replica, bound and not listening yet."""

    def __init__(self, layout: Layout, replica: str, *, adopted: bool = False) -> None:
        """Bind them, replacing those of an earlier process; raises OSError where that fails.

        Args:
            replica: its name, unique among all of the agent's.
            adopted: the process has them already, from an earlier agent.
        """
        self._bound: dict[str, socket.socket] = {}
        if adopted:
            self.folder = folder_of(layout, replica)
            return
        self.folder = own_folder(layout, replica)
        try:
            for name in ENDPOINTS:
                self._bound[name] = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                self._bound[name].bind(str(self.path(name)))
                self.path(name).chmod(0o600)
        except OSError:
            self.close()
            raise

    def path(self, name: str) -> Path:
        """Return the path of an endpoint's socket."""
        return self.folder / name

    @property
    def flags(self) -> list[str]:
        """Return the runtime's flags to listen on them, inherited in this order."""
        return [f"--{name}-address=fd:{number}" for number, name in enumerate(self._bound, FIRST_DESCRIPTOR)]

    @property
    def numbers(self) -> list[int]:
        """Return the descriptors that its process has to inherit."""
        return [sock.fileno() for sock in self._bound.values()]

    def close(self) -> None:
        """Close the agent's copies, so that they end with the process."""
        for sock in self._bound.values():
            sock.close()

    def remove(self) -> None:
        """Remove their files."""
        shutil.rmtree(self.folder, ignore_errors=True)


def takes_sockets(runtime: Sequence[str], said: str) -> bool:
    """Return whether the runtime of this command takes bound sockets; earlier releases and grpcio do not.

    Args:
        said: its --help.
    """
    return value_of(runtime, "--grpc-server") != "grpcio" and _OFFERED in said


def help_of(runtime: Sequence[str]) -> str:
    """Return a runtime's --help, which lists its flags, or "": earlier releases lack some of them."""
    try:
        done = subprocess.run(
            [*runtime, "--help"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_HELP_S,
            check=False,
            env=environment({}, is_code=False),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace") if done.returncode == 0 else ""


def _fits(path: Path) -> bool:
    return len(os.fsencode(path)) <= _LONGEST_PATH_BYTES


def _short(name: bytes) -> str:
    return hashlib.sha256(name).hexdigest()[:16]
