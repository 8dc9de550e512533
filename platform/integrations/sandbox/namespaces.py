"""Linux namespaces of a process: users, files, network, System V IPC, process ids. See namespaces(7).

In the user namespace it keeps its user id and has no rights over the machine; it sees only the files it may see, at
their own paths in a new root; the network is empty except for a loopback.
"""

# As in launch.py.
# ruff: noqa: PTH100, PTH103, PTH106, PTH114, PTH115, PTH116, PTH118, PTH120, PTH123, PTH211, PTH102

import ctypes
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterable

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_ANYWHERE = "/tmp"  # noqa: S108 - a folder that every machine has; the new root covers it for a moment
_OLD = "/.old"
_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_PROCESSES = "/proc"

_libc = ctypes.CDLL(None, use_errno=True)


def enter(*, network: bool, processes: bool) -> None:
    """Enter new namespaces, with `network` a network namespace too.

    With `processes` the next child is the first process of a process id namespace.

    Raises:
        OSError: this machine does not let the process make any.
    """
    user, group = os.geteuid(), os.getegid()
    _check(_libc.unshare(_NEWUSER | _NEWNS | _NEWIPC | (_NEWPID if processes else 0)), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)
    _mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    if network:
        _check(_libc.unshare(_NEWNET), "unshare")
        _raise_loopback()


def see_only(paths: Iterable[str], *, own_shared_memory: bool, own_processes: bool) -> bool:
    """Change to a root that holds only these files and folders, each at its own path, and /proc.

    Returns whether /proc is right: with `own_processes` it shows only this process's own namespace. Where mounting that
    is refused, as in a container that hides parts of /proc, it is the machine's.

    Raises:
        OSError: a mount was refused.
    """
    _mount("tmpfs", _ANYWHERE, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755")
    os.mkdir(f"{_ANYWHERE}{_OLD}")
    os.chdir(_ANYWHERE)
    _check(_libc.syscall(_PIVOT_ROOT[os.uname().machine], b".", _OLD[1:].encode()), "pivot_root")
    os.chdir("/")
    shown: set[str] = set()
    for path in sorted({os.path.abspath(path) for path in paths}):
        _show(path, shown)
    mounted = own_processes and _mount_processes()
    if not mounted:
        _show(_PROCESSES, shown)
    if own_shared_memory:
        os.makedirs(_SHARED_MEMORY, exist_ok=True)
        _mount("tmpfs", _SHARED_MEMORY, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777")
    _check(_libc.umount2(_OLD.encode(), _MNT_DETACH), "umount")
    os.rmdir(_OLD)
    return mounted == own_processes


def _mount_processes() -> bool:
    os.makedirs(_PROCESSES, exist_ok=True)
    try:
        _mount("proc", _PROCESSES, "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    except OSError:
        return False
    return True


def _show(path: str, shown: set[str]) -> None:
    """Show a path of the old root in the new one: links along it as links, its target as a mount."""
    way = ""
    for word in path.strip("/").split("/"):
        way = f"{way}/{word}"
        if os.path.islink(_OLD + way):
            target = os.readlink(_OLD + way)
            if not os.path.lexists(way):
                os.makedirs(os.path.dirname(way), exist_ok=True)
                os.symlink(target, way)
            _show(os.path.normpath(os.path.join(os.path.dirname(way), target) + path[len(way) :]), shown)
            return
    if any(path == each or path.startswith(f"{each}/") for each in shown):
        return
    try:
        kind = os.stat(_OLD + path).st_mode
    except OSError:  # it is not there, or not ours to see
        return
    if stat.S_ISDIR(kind):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_CLOEXEC, 0o600))
    _mount(_OLD + path, path, None, _MS_BIND | _MS_REC)
    shown.add(path)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        found = fcntl.ioctl(sock, _SIOCGIFFLAGS, request)
        (flags,) = struct.unpack_from("H", found, 16)
        fcntl.ioctl(sock, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind)]
    _check(_libc.mount(*texts, ctypes.c_ulong(flags), None if data is None else data.encode()), f"mount {target}")


def _check(result: int, what: str) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
