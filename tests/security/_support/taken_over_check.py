"""A checker whose models take over the process that opens them: each does what the file beside it says.

    python -I taken_over_check.py

Only the child that answers for a model is taken over, after it confined itself; its parent is the checker.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from serving_runtime.engine.inspection import checker, checker_child
from serving_runtime.engine.inspection.answers import answer

_libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16


def taken_over(question: str, folder: Path, settings: object) -> tuple[int, dict[str, object]]:
    """Do what `1/attack.json` beside the model says, or answer."""
    file = folder / "1" / "attack.json"
    if not file.exists():
        return answer(question, folder, settings)  # type: ignore[arg-type]
    aims = json.loads(file.read_text())
    return 2, {"schema": f"fairlead.{question}/v1", "error": json.dumps(ATTACKS[aims["attack"]](folder, aims))}


def _reached(attempts: dict[str, Callable[[], object]]) -> list[str]:
    reached = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except (OSError, RuntimeError):
            continue
        reached.append(name)
    return reached


def _called(*arguments: object) -> None:
    if _libc.syscall(*arguments) < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def reach(folder: Path, aims: dict[str, str]) -> object:
    """Return what was reached of other models' files, the checker, and what would stay behind."""
    checker_id, secret = os.getppid(), Path(aims["secret"])
    everything = Path("/proc", str(checker_id))
    pipe = max(_files())
    home = Path(os.environ["HOME"])
    found = _reached(
        {
            "another's file": secret.read_text,
            "another's folder": lambda: list(folder.parent.parent.iterdir()),
            "the checker's folder": lambda: list(home.iterdir()),
            "a file in it": (home / "made").touch,
            "a file of its own": (folder / "made").touch,
            "its own model": lambda: (folder / "1" / "attack.json").write_text("{}"),
            "the checker's output": lambda: (everything / "fd" / "1").open("w").close(),
            "the checker's memory": lambda: (everything / "mem").open("rb").close(),
            "the checker's variables": (everything / "environ").read_bytes,
            "the checker by ptrace": lambda: _called(101, PTRACE_ATTACH, checker_id, 0, 0),
            "the checker's end": lambda: os.kill(checker_id, signal.SIGKILL),
            "a signal to its group": lambda: os.kill(0, 0),
            "a signal to everything": lambda: os.kill(-1, 0),
            "a handle of the checker": lambda: os.pidfd_open(checker_id),
            "a thread's signal": lambda: _called(200, checker_id, 0),
            "the checker's limits": lambda: resource.prlimit(checker_id, resource.RLIMIT_NOFILE, (3, 3)),
            "the checker's processors": lambda: os.sched_setaffinity(checker_id, {0}),
            "the checker's turn": lambda: os.setpriority(os.PRIO_PROCESS, checker_id, 19),
            "a signal by a file": lambda: fcntl.fcntl(pipe, fcntl.F_SETOWN, checker_id),
            "a process": lambda: os.fork() or os._exit(0),
            "a program": lambda: os.posix_spawn("/bin/true", ["true"], {}),
            "another program": lambda: os.execv("/bin/true", ["true"]),
            "a session": os.setsid,
            "a life after the checker": lambda: _prctl(1, 0),
            "shared memory": lambda: _called(29, 4242, 4096, 0o1600),
            "a socket": _socket,
        }
    )
    threads: list[int] = []
    thread = threading.Thread(target=threads.append, args=(1,))
    thread.start()
    thread.join()
    files = _files()
    return {"reached": found, "threads": len(threads), "files": files}


def _files() -> list[int]:
    """Return the numbers of this process's open files."""
    numbers = [each.name for each in Path("/proc/self/fd").iterdir()]
    return sorted(int(number) for number in numbers if Path("/proc/self/fd", number).exists())


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) < 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _socket() -> None:
    import socket  # noqa: PLC0415

    socket.socket()


def fork_bomb(folder: Path, aims: dict[str, str]) -> object:
    """Return how many processes came of a hundred tries."""
    made = 0
    for _ in range(100):
        try:
            if os.fork() == 0:
                time.sleep(60)
        except OSError:
            continue
        made += 1
    return {"made": made}


def hang(folder: Path, aims: dict[str, str]) -> object:
    """Never answer."""
    while True:
        time.sleep(1)


def stop(folder: Path, aims: dict[str, str]) -> object:
    """Stop, so that no limit of processor time ends it."""
    os.kill(os.getpid(), signal.SIGSTOP)
    return {}


def outlive(folder: Path, aims: dict[str, str]) -> object:
    """Answer well, and go on."""
    pipe = max(_files())
    os.write(pipe, b'{"schema": "fairlead.inspect/v1", "error": "outlived"}')
    os.close(pipe)
    while True:
        time.sleep(1)


def giant(folder: Path, aims: dict[str, str]) -> object:
    """Return more than an answer may have."""
    return "x" * (64 << 20)


def crash(folder: Path, aims: dict[str, str]) -> object:
    """End by a fault."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def eat(folder: Path, aims: dict[str, str]) -> object:
    """Take more memory than any machine has."""
    return {"size": len(bytearray(1 << 46))}


ATTACKS = {each.__name__: each for each in (reach, fork_bomb, hang, stop, outlive, giant, crash, eat)}

if __name__ == "__main__":
    checker_child.answer = taken_over  # type: ignore[assignment]
    sys.exit(checker.main())
