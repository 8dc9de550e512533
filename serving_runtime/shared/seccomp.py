"""Seccomp filter: the kernel refuses system calls that running a model never needs. See seccomp(2).

It starts from what the default profile of container engines refuses to a process without capabilities, and io_uring,
which bypasses other checks. Refused calls fail with EPERM; calls that are newer than the list, clone3 (whose flags a
filter cannot read) and calls of other architectures fail with ENOSYS, so that libraries fall back to older ones.
"""

import ctypes
import os
import struct
from collections.abc import Sequence

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
LOAD, _AND, _JUMP, EQUAL, _AT_LEAST, ANY_BIT, RETURN = 0x20, 0x54, 0x05, 0x15, 0x35, 0x45, 0x06
NUMBER_AT, ARCHITECTURE_AT, ARGUMENT_AT = 0, 4, 16
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
EPERM, _EACCES, _ENOSYS = 1, 13, 38
_UNKNOWN = 463
"""The first call number beyond the list."""
_NEW_NAMESPACES, _THREAD = 0x7E020000, 0x10000
_PR_SET_PDEATHSIG = 1
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _TYPE, _TCP = 1, 0xF, 6

# name: number on x86_64, on aarch64; None where the architecture lacks the call.
_REFUSED: dict[str, tuple[int | None, int | None]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "adjtimex": (159, 171),
    "create_module": (174, None),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_kernel_syms": (177, None),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "query_module": (178, None),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "ustat": (136, None),
    "vhangup": (153, 58),
    "vserver": (236, None),
}
# For a process alone: what starts others, holds memory that no limit counts, or reaches other processes and files.
_REFUSED_ALONE: dict[str, tuple[int | None, int | None]] = {
    "chmod": (90, None),
    "chown": (92, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "fork": (57, None),
    "fremovexattr": (199, 16),
    "fsetxattr": (190, 7),
    "futimesat": (261, None),
    "inotify_add_watch": (254, 27),
    "ioprio_set": (251, 30),
    "lchown": (94, None),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "mq_open": (240, 180),
    "msgget": (68, 186),
    "removexattr": (197, 14),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semget": (64, 190),
    "setpriority": (141, 140),
    "setxattr": (188, 5),
    "shmget": (29, 194),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vfork": (58, None),
}
ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_CLONE, _CLONE3, _SOCKET = (56, 220), (435, 435), (41, 198)
_PRCTL, _PRLIMIT64 = (157, 167), (302, 261)

_libc = ctypes.CDLL(None, use_errno=True)


def supported(machine: str | None = None) -> bool:
    """Return whether the list has the numbers of the machine's architecture."""
    return (machine or os.uname().machine) in ARCHITECTURES


def program(machine: str, *, unix: bool, connects: bool, sockets: bool = True, alone: bool = False) -> bytes:
    """Return the filter, eight bytes an instruction.

    Without `sockets` only socket pairs are allowed. Else IPv4, IPv6 and netlink sockets are, and Unix sockets with
    `unix`; without `connects` IP sockets are TCP only: Landlock refuses its connections, and covers neither datagrams
    nor other protocols. A process that is `alone` starts threads and no processes, ends with its parent, and changes
    neither limits of other processes nor attributes of files.
    """
    architecture, column = ARCHITECTURES[machine]
    calls = {**_REFUSED, **(_REFUSED_ALONE if alone else {})}
    refused = sorted(number for numbers in calls.values() if (number := numbers[column]) is not None)
    code = [
        instruction(LOAD, ARCHITECTURE_AT),
        instruction(EQUAL, architecture, 1, 0),
        instruction(RETURN, ERRNO | _ENOSYS),
        instruction(LOAD, NUMBER_AT),
        *answered([_CLONE3[column]], ERRNO | _ENOSYS),
        instruction(_AT_LEAST, _UNKNOWN, 0, 1),  # also calls of the x32 ABI
        instruction(RETURN, ERRNO | _ENOSYS),
        *answered(refused, ERRNO | EPERM),
        *(_alone(column) if alone else []),
        instruction(EQUAL, _CLONE[column], 0, 4),
        instruction(LOAD, ARGUMENT_AT),
        instruction(ANY_BIT, _NEW_NAMESPACES, 0, 1),
        instruction(RETURN, ERRNO | EPERM),
        instruction(RETURN, ALLOW),
    ]
    if not sockets:
        end = [instruction(EQUAL, _SOCKET[column], 0, 1), instruction(RETURN, ERRNO | _EACCES)]
        return b"".join([*code, *end, instruction(RETURN, ALLOW)])
    plain = [_NETLINK, *([_UNIX] if unix else []), *([_INET, _INET6] if connects else [])]
    code += [
        instruction(EQUAL, _SOCKET[column], 1, 0),
        instruction(RETURN, ALLOW),
        instruction(LOAD, ARGUMENT_AT),
        *answered(plain, ALLOW),
    ]
    if not connects:
        code += [
            instruction(EQUAL, _INET, 2, 0),
            instruction(EQUAL, _INET6, 1, 0),
            instruction(RETURN, ERRNO | _EACCES),
            instruction(LOAD, ARGUMENT_AT + 8),
            instruction(_AND, _TYPE),
            instruction(EQUAL, _STREAM, 1, 0),
            instruction(RETURN, ERRNO | _EACCES),
            instruction(LOAD, ARGUMENT_AT + 16),
            *answered([0, _TCP], ALLOW),
        ]
    return b"".join([*code, instruction(RETURN, ERRNO | _EACCES)])


def _alone(column: int) -> list[bytes]:
    """Return code that refuses new processes, limits of others, and to outlive the parent."""
    code = []
    for call, test in (
        (_CLONE[column], instruction(ANY_BIT, _THREAD, 1, 0)),
        (_PRLIMIT64[column], instruction(EQUAL, 0, 1, 0)),
        (_PRCTL[column], instruction(EQUAL, _PR_SET_PDEATHSIG, 0, 1)),
    ):
        code += [
            instruction(EQUAL, call, 0, 4),
            instruction(LOAD, ARGUMENT_AT),
            test,
            instruction(RETURN, ERRNO | EPERM),
            instruction(LOAD, NUMBER_AT),
        ]
    return code


def install(*, unix: bool, connects: bool, sockets: bool = True, alone: bool = False) -> None:
    """Filter the system calls of this process and all its children; needs `no_new_privs`.

    Raises:
        OSError: the kernel does not support filters, or the architecture is not known here.
    """
    machine = os.uname().machine
    if not supported(machine):
        raise OSError(_ENOSYS, f"seccomp: the system calls of {machine} are not known")
    attach(program(machine, unix=unix, connects=connects, sockets=sockets, alone=alone))


def attach(text: bytes) -> None:
    """Add a filter to those of this process; each call is then as all of them allow. Raises OSError."""
    code = ctypes.create_string_buffer(text, len(text))
    filtered = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(text) // 8, ctypes.addressof(code)))
    if _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, filtered, 0, 0) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")


def answered(numbers: Sequence[int], answer: int) -> list[bytes]:
    """Return code that ends with `answer` where the loaded value is one of the numbers, and goes on where not."""
    code = [instruction(EQUAL, number, len(numbers) - place, 0) for place, number in enumerate(numbers)]
    return [*code, instruction(_JUMP, 1), instruction(RETURN, answer)]


def instruction(code: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)
