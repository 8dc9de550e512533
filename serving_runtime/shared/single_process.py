"""Seccomp filter of a process that stays alone: it starts no other, and its calls reach no other.

It comes on top of `seccomp.install`, for a process that shares its user and its process ids with one that must outlive
it. By Landlock alone a process could still start others that outlive it, lower the limits of its parent (prlimit),
have the kernel signal it (F_SETOWN), or leave shared memory behind. Threads are allowed. See seccomp(2).
"""

import os
from collections.abc import Iterable

from serving_runtime.shared.seccomp import (
    ALLOW,
    ANY_BIT,
    ARCHITECTURE_AT,
    ARCHITECTURES,
    ARGUMENT_AT,
    EPERM,
    EQUAL,
    ERRNO,
    LOAD,
    NUMBER_AT,
    RETURN,
    answered,
    attach,
    instruction,
)

_THREAD = 0x00010000
_OWN_SIGNAL_AT_PARENTS_DEATH, _SUBREAPER, _TRACER = 1, 36, 0x59616D61
_OWNER, _SIGNAL, _OWNER_EX = 8, 10, 15
_FIOSETOWN, _SIOCSPGRP = 0x8901, 0x8902

# name: number on x86_64, on aarch64; None where the architecture lacks the call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "execve": (59, 221),
    "execveat": (322, 281),
    "fork": (57, None),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "process_mrelease": (448, 448),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "setsid": (112, 157),
    "shmat": (30, 196),
    "shmget": (29, 194),
    "tkill": (200, 130),
    "vfork": (58, None),
}
_CLONE = (56, 220)
_OF_ITSELF_BY_ID: dict[str, tuple[int, int]] = {
    "kill": (62, 129),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "tgkill": (234, 131),
}
_OF_ITSELF: dict[str, tuple[int, int]] = {"prlimit64": (302, 261), "sched_setaffinity": (203, 122)}
_NOT_WITH: dict[str, tuple[tuple[int, int], int, tuple[int, ...]]] = {
    "prctl": ((157, 167), 0, (_OWN_SIGNAL_AT_PARENTS_DEATH, _SUBREAPER, _TRACER)),
    "fcntl": ((72, 25), 1, (_OWNER, _SIGNAL, _OWNER_EX)),
    "ioctl": ((16, 29), 1, (_FIOSETOWN, _SIOCSPGRP)),
}
"""Numbers, place of the argument, values of it that are refused."""


def program(machine: str, process: int) -> bytes:
    """Return the filter for the process of that id, eight bytes an instruction."""
    architecture, column = ARCHITECTURES[machine]
    refused = sorted(number for numbers in _REFUSED.values() if (number := numbers[column]) is not None)
    code = [
        instruction(LOAD, ARCHITECTURE_AT),
        instruction(EQUAL, architecture, 1, 0),
        instruction(RETURN, ERRNO | EPERM),
        instruction(LOAD, NUMBER_AT),
        *answered(refused, ERRNO | EPERM),
        *_block(
            _CLONE[column],
            0,
            [
                instruction(ANY_BIT, _THREAD, 1, 0),
                instruction(RETURN, ERRNO | EPERM),
                instruction(RETURN, ALLOW),
            ],
        ),
    ]
    for numbers in _OF_ITSELF_BY_ID.values():
        code += _block(numbers[column], 0, _allowed([process]))
    for numbers in _OF_ITSELF.values():
        code += _block(numbers[column], 0, _allowed([0, process]))
    for numbers, place, values in _NOT_WITH.values():
        code += _block(numbers[column], place, [*answered(values, ERRNO | EPERM), instruction(RETURN, ALLOW)])
    return b"".join([*code, instruction(RETURN, ALLOW)])


def install() -> None:
    """Filter the system calls of this process; needs `no_new_privs`, and an architecture that `seccomp` supports.

    Raises:
        OSError: the kernel does not support filters.
    """
    attach(program(os.uname().machine, os.getpid()))


def _block(number: int, place: int, decide: list[bytes]) -> list[bytes]:
    """Return code that decides over one call by the lower half of one of its arguments, and goes on for others."""
    return [
        instruction(EQUAL, number, 0, 1 + len(decide)),
        instruction(LOAD, ARGUMENT_AT + 8 * place),
        *decide,
    ]


def _allowed(values: Iterable[int]) -> list[bytes]:
    return [*answered(list(values), ALLOW), instruction(RETURN, ERRNO | EPERM)]
