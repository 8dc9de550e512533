"""Process holder: `python -m integrations.clusters.local.holder DESCRIPTOR`, one end of a channel (`wire`).

    start   not held, or ended --> running            signal   to the group of a running program
    status  running --> ended, once it was waited for  forget   ended --> not held
    list    what is held, for the next agent           kill     a process that a program left running

It has one thread and no state except that of its children. It ignores signals to end: it ends when the channel does,
and kills what runs. A program's exit code is kept until it is forgotten, so that none is lost while no agent runs.
"""

import ctypes
import errno
import fcntl
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.process_identity import start_ticks
from integrations.clusters.local.holder import wire

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_libc = ctypes.CDLL(None)
_ABOVE = 64  # no program has as many numbered descriptors
Answer = dict[str, Any]


@dataclass(slots=True)
class Held:
    """One program; `status` is None while it runs, then its exit code, -N for signal N. `note` is the agent's."""

    pid: int
    start_ticks: int | None
    note: Any
    status: int | None = None


class Holder:
    """The held programs, by name."""

    def __init__(self) -> None:
        self._held: dict[str, Held] = {}
        self._verbs: Mapping[str, Callable[..., Answer]] = {
            "start": self._start,
            "signal": self._signal,
            "status": self._status,
            "forget": self._forget,
            "list": self._list,
            "kill": self._kill,
        }

    def answer(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> Answer:
        """Return the answer to a request, with `error`, a sentence, and `errno` for a failed one."""
        self.reap()
        try:
            verb = self._verbs[request["verb"]]
            return verb(descriptors, **request["of"])
        except OSError as error:
            return {"error": error.strerror or str(error), "errno": error.errno}
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            return {"error": f"not understood: {type(error).__name__}: {error}"}

    def reap(self) -> None:
        """Reap ended programs, and kill their orphans."""
        with suppress(ChildProcessError):
            while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                held = self._running().get(found.si_pid)
                if held is not None:
                    _signal_group(found.si_pid, signal.SIGKILL)  # its id stays reserved until it is waited for
                status = os.waitpid(found.si_pid, 0)[1]
                if held is not None:
                    held.status = os.waitstatus_to_exitcode(status)
                    self._end_orphans()

    def end(self) -> None:
        """Kill everything; returns when it is gone."""
        for pid, held in self._running().items():
            _signal_group(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            held.status = -signal.SIGKILL
        self._end_orphans()

    def _start(
        self, descriptors: Sequence[int], name: str, command: list[str], env: dict[str, str], note: Any
    ) -> Answer:
        if (earlier := self._held.get(name)) is not None and earlier.status is None:
            raise ValueError(f"{name} runs")
        held = Held(_spawned(command, env, descriptors[0], descriptors[1:]), None, note)
        held.start_ticks = start_ticks(held.pid)
        self._held[name] = held
        return {"pid": held.pid, "start_ticks": held.start_ticks}

    def _signal(self, _descriptors: Sequence[int], name: str, number: int) -> Answer:
        if (held := self._held[name]).status is None:
            _signal_group(held.pid, number)
        return {}

    def _status(self, _descriptors: Sequence[int], name: str) -> Answer:
        return {"status": self._held[name].status}

    def _forget(self, _descriptors: Sequence[int], name: str) -> Answer:
        if (held := self._held.get(name)) is not None and held.status is None:
            raise ValueError(f"{name} runs")
        self._held.pop(name, None)
        return {}

    def _list(self, _descriptors: Sequence[int]) -> Answer:
        programs = {
            name: {"pid": held.pid, "start_ticks": held.start_ticks, "note": held.note, "status": held.status}
            for name, held in self._held.items()
        }
        return {"holder": os.getpid(), "programs": programs}

    def _kill(self, _descriptors: Sequence[int], pid: int) -> Answer:
        if pid in self._orphans():
            os.kill(pid, signal.SIGKILL)
        return {}

    def _running(self) -> dict[int, Held]:
        return {held.pid: held for held in self._held.values() if held.status is None}

    def _orphans(self) -> set[int]:
        return children() - self._running().keys()

    def _end_orphans(self) -> None:
        """Kill orphans of programs; their children become this process's, and are looked for again."""
        while orphans := self._orphans():
            for pid in orphans:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def children() -> set[int]:
    """Return this process's children; empty where the kernel does not list them."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):
            found |= set(map(int, (task / "children").read_text(encoding="ascii").split()))
    return found


def _spawned(command: list[str], env: Mapping[str, str], output: int, inherited: Sequence[int]) -> int:
    """Start a program in a group of its own that ends with this process; returns its process id.

    By fork, as this process has one thread: to start a launcher for it first takes longer than Envoy's start.
    """
    holder = os.getpid()
    failed, failing = os.pipe()
    above = [fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for each in (output, *inherited)]
    try:
        if not (pid := os.fork()):
            try:
                _become(command, env, above, holder)
            except OSError as error:
                os.write(failing, str(error.errno).encode())
            except (LookupError, TypeError, ValueError):
                os.write(failing, str(errno.EINVAL).encode())
            finally:
                os._exit(1)
    finally:
        wire.close([*above, failing])
    with os.fdopen(failed, "rb") as said:
        number = said.read()  # empty, once it has become the program
    if number:
        os.waitpid(pid, 0)
        raise OSError(int(number), os.strerror(int(number)))
    return pid


def _become(command: list[str], env: Mapping[str, str], above: Sequence[int], holder: int) -> None:
    os.setpgid(0, 0)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != holder:  # it died before the line above
        return
    for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(each, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, descriptor in enumerate([above[0], *above], 1):
        os.dup2(descriptor, number)
    os.execvpe(command[0], command, env)  # noqa: S606


def _signal_group(group: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)


def run(channel: socket.socket) -> None:
    """Serve the channel until its other end is closed, then end everything."""
    holder = Holder()
    waking, woken = socket.socketpair()
    for each in (waking, woken):
        each.setblocking(False)
    signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    poll.register(waking, select.POLLIN)
    try:
        while True:
            for number, events in poll.poll():
                if number == waking.fileno():
                    waking.recv(4096)
                    holder.reap()
                elif not _serve(holder, channel) and events & select.POLLHUP:
                    return
    finally:
        holder.end()


def _serve(holder: Holder, channel: socket.socket) -> bool:
    """Answer one message; returns whether one came."""
    try:
        if (received := wire.receive(channel)) is None:
            return False
    except ValueError:
        return True
    request, descriptors = received
    try:
        answer = holder.answer(request, descriptors)
    finally:
        wire.close(descriptors)
    with suppress(OSError):  # the agent that asked is gone, or never reads
        wire.send(channel, {**answer, "id": request.get("id")}, flags=socket.MSG_DONTWAIT)
    return True


def main() -> None:
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    run(channel)


if __name__ == "__main__":
    main()
