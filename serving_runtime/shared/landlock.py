"""Landlock sandbox: the kernel refuses what no rule allows, for this process and all its children.

Numbers and structures are those of `linux/landlock.h`; see landlock(7). The system calls have the same numbers on all
architectures.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_CONNECT_TCP = 1 << 1
_SCOPE_ABSTRACT_UNIX_SOCKET, _SCOPE_SIGNAL = 1 << 0, 1 << 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR

FILES, CONNECT, SIGNALS = 1, 4, 6
"""The ABI versions from which files, TCP connections, and signals and abstract sockets can be refused."""

_libc = ctypes.CDLL(None, use_errno=True)


def version() -> int:
    """Return the ABI version of the kernel's Landlock; 0 where it is absent or switched off."""
    return max(0, int(_libc.syscall(_CREATE_RULESET, None, 0, _VERSION)))


def restrict(
    *, read: Iterable[str], listed: Iterable[str], write: Iterable[str], devices: Iterable[str], connect: bool
) -> None:
    """Restrict the process to what is named; `devices` are read, written and controlled.

    Needs `no_new_privs`. What the kernel's version cannot refuse stays allowed: see the versions above.

    Raises:
        OSError: the kernel has no Landlock.
    """
    has = version()
    every = (1 << 13) - 1
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEV)):
        every |= right if has >= since else 0
    network = _CONNECT_TCP if not connect and has >= CONNECT else 0
    scoped = (_SCOPE_ABSTRACT_UNIX_SOCKET | _SCOPE_SIGNAL) if has >= SIGNALS else 0
    attributes = struct.pack("=QQQ", every, network, scoped)
    size = 8 if has < CONNECT else 16 if has < SIGNALS else 24
    ruleset = _called(_CREATE_RULESET, ctypes.c_char_p(attributes), ctypes.c_size_t(size), 0)
    try:
        for paths, rights in (
            (read, _READ),
            (listed, _READ_DIR),
            (write, every & ~(_MAKE_CHAR | _MAKE_BLOCK)),
            (devices, _READ | _WRITE_FILE | _IOCTL_DEV),
        ):
            for path in paths:
                _allow(ruleset, path, rights & every)
        _called(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:  # it does not exist here, or is not accessible
        return
    try:
        if not stat.S_ISDIR(os.fstat(place).st_mode):
            rights &= _OF_FILES
        rule = struct.pack("=Qi", rights, place)
        _called(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.c_char_p(rule), 0)
    finally:
        os.close(place)


def _called(number: int, *arguments: object) -> int:
    found = int(_libc.syscall(number, *arguments))
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"Landlock: {os.strerror(code)}")
    return found
