"""Privileges of this process: gives up all of them for good; and what it takes to sandbox code without namespaces."""

import ctypes
import os
import struct

from serving_runtime.shared import landlock, seccomp

_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_CAPABILITIES, _CAPABILITY_VERSION = 64, 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def give_up() -> None:
    """Drop all capabilities, and forbid gaining any by running a program."""
    for number in range(_CAPABILITIES):
        _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION, 0), bytes(24)
    _libc.capset(header, nothing)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def sandbox_lacks() -> str:
    """Return what this machine lacks to keep code from other processes without namespaces; empty where nothing."""
    if landlock.version() < landlock.SIGNALS:
        return "it needs Landlock as of Linux 6.12, which refuses signals to other processes"
    return "" if seccomp.supported() else f"it needs seccomp, which is not supported on {os.uname().machine}"
