"""Sandbox of a serving runtime on this machine: its libraries, its model, its own folder, and no more."""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from integrations.sandbox.policy import NetworkAccess, Sandbox

REPLICA_LIMITS = {"core": 0, "fsize": 8 << 30, "nofile": 1 << 16}
"""Of `resource`; `fsize` also bounds the shared memory for tensors of models in Python."""
_SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/usr", "/opt/nvidia", "/run/nvidia", "/var/lib/nvidia")
_OF_ETC = (
    *("alternatives", "ca-certificates", "group", "host.conf", "hosts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *(
        "localtime",
        "mime.types",
        "nsswitch.conf",
        "nvidia",
        "OpenCL",
        "passwd",
        "pki",
        "resolv.conf",
        "ssl",
        "timezone",
    ),
)


def confined(
    runtime: Sequence[str],
    *,
    read: Iterable[Path],
    write: Iterable[Path],
    network: NetworkAccess,
) -> Sandbox:
    """Return the sandbox of a program that begins with the command `runtime`."""
    packages = _packages()
    installed = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    needed = [*_SYSTEM, *(f"/etc/{name}" for name in _OF_ETC), sys.prefix, sys.base_prefix, *installed, *packages]
    needed += _of_command(runtime)
    needed += [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    return Sandbox(
        read=tuple(dict.fromkeys([*needed, *map(str, read)])),
        listed=tuple(str(Path(package).parent) for package in packages),
        write=tuple(map(str, write)),
        network=network,
        shared_memory="--allow-client-shm" in runtime or "--allow-client-shm=true" in runtime,
    )


def network_of(*, connects: bool, posts: bool, on_sockets: bool, calls_itself: bool = False) -> NetworkAccess:
    """Return the network of a replica, which answers on Unix sockets or on ports.

    Args:
        connects: whether its model may open connections.
        posts: whether it has a logger or traces without a relay.
        calls_itself: whether its processes call each other.
    """
    if connects or posts:
        return NetworkAccess.ALL
    if calls_itself and on_sockets:
        return NetworkAccess.LOOPBACK
    return NetworkAccess.NONE if on_sockets else NetworkAccess.LISTEN


def private(folder: Path) -> dict[str, str]:
    """Return the variables that make `folder` a program's home and temporary folder."""
    return {"HOME": str(folder), "TMPDIR": str(folder)}


def _packages() -> list[str]:
    """Return the paths of the runtime's own files; of a checkout nothing else is shown."""
    runtime = find_spec("serving_runtime")
    return list(runtime.submodule_search_locations or ()) if runtime is not None else []


def _of_command(command: Sequence[str]) -> list[str]:
    """Return the files that a command names: where its interpreter is installed, and folders of scripts."""
    program = Path(command[0])
    found = [str(folder) for folder in (program.parents[1:2] if program.is_absolute() else ())]
    scripts = [Path(word) for word in command[1:] if word.startswith("/")]
    return found + [str(script.parent) for script in scripts if script.suffix == ".py" and script.is_file()]
