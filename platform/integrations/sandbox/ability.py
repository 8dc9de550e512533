"""Sandbox support of this machine, measured by building one."""

import os
import subprocess
import sys

from integrations.sandbox import launch
from integrations.sandbox.command import VARIABLE, command, mode_of
from integrations.sandbox.policy import Launch, Mode, NetworkAccess, Sandbox

WHOLE = "models run in a sandbox that is whole"
_TIMEOUT_S = 30.0
_OPENS_SOCKET = "import socket; socket.socket(socket.AF_UNIX)"
_SYSTEM = ("/bin", "/etc", "/lib", "/lib64", "/usr")


def shortfall(mode: Mode) -> str:
    """Return what the sandbox of models lacks here, as a sentence; empty where it is complete."""
    if mode is Mode.OFF:
        return f"models run without a sandbox: {VARIABLE} is {mode}"
    wall = Sandbox(read=(*_SYSTEM, sys.base_prefix), network=NetworkAccess.NONE, own_processes=True)
    asked = Launch(os.getpid(), sandbox=wall, mode=Mode.REQUIRED)
    try:
        tried = subprocess.run(
            [sys.executable, "-I", "-S", launch.__file__, asked.to_json(), "true"],
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            text=True,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"whether this machine can give models a sandbox could not be found out: {error}"
    if tried.returncode == 0:
        return ""
    lacks = tried.stderr.strip().rpartition("\n")[2]
    if tried.returncode == launch.NOT_POSSIBLE:
        lacks = lacks.removeprefix(launch.REFUSAL)
    outcome = "and none is started" if mode is Mode.REQUIRED else "and they are started with the rest of it"
    return f"this machine cannot give models all of the sandbox ({lacks}), {outcome}"


def opens_socket_files() -> bool:
    """Return whether a process in the sandbox that this machine supports can connect to Unix sockets in files.

    Without namespaces it cannot. Without a sandbox it can, and needs no such socket.
    """
    if mode_of(os.environ) is Mode.OFF:
        return False
    wall = Sandbox(read=(*_SYSTEM, sys.base_prefix), network=NetworkAccess.NONE)
    inside = command([os.path.realpath(sys.executable), "-I", "-S", "-c", _OPENS_SOCKET], sandbox=wall)
    try:
        return subprocess.run(inside, capture_output=True, timeout=_TIMEOUT_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def described() -> tuple[bool, str]:
    """Return whether models start as the setting requires, and a sentence on their sandbox."""
    mode = mode_of(os.environ)
    lacks = shortfall(mode)
    return not lacks or mode is not Mode.REQUIRED, lacks or WHOLE
