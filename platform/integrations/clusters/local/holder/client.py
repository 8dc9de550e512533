"""Client of the process holder: the agent's end of the channel to `holder.__main__`, one request after the other."""

import itertools
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integrations.clusters.local.holder import wire

_ANSWER_WITHIN_S = 30.0
_LOOK_EVERY_S = 0.01


class HolderGoneError(Exception):
    """The holder does not answer; what it held has ended with it."""


@dataclass(frozen=True, slots=True)
class Held:
    """One program that the holder has: running while `status` is None, else ended with that exit code (-N: signal N).

    Attributes:
        note: data of the agent that started it, for the next.
    """

    name: str
    pid: int
    start_ticks: int | None
    note: Any
    status: int | None = None


class Holder:
    """Calls the holder; use it from one thread. A call takes milliseconds, and the event loop waits for it.

    Attributes:
        pid: of the holder, the parent of all programs.
        pids: of the programs that this agent knows to run.
    """

    def __init__(self, channel: socket.socket, process: "subprocess.Popen[bytes] | None" = None) -> None:
        """Connect; raises HolderGoneError where no holder answers."""
        channel.set_inheritable(False)
        self._channel = channel
        self._own = process
        self._ids = (f"{os.getpid()}.{time.monotonic_ns()}.{number}" for number in itertools.count())
        self.pids: set[int] = set()
        self.pid = int(self._ask("list")["holder"])

    @classmethod
    def at(cls, descriptor: int) -> "Holder":
        """Return the holder at the other end of an inherited channel."""
        return cls(socket.socket(fileno=descriptor))

    @classmethod
    def started(cls) -> "Holder":
        """Start a holder for this process alone, which ends with it."""
        own, its = wire.pair()
        with its:
            command = [sys.executable, "-m", "integrations.clusters.local.holder", str(its.fileno())]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, pass_fds=[its.fileno()], start_new_session=True
            )
        return cls(own, process)

    def programs(self) -> list[Held]:
        """Return the held programs."""
        found = self._ask("list")["programs"]
        return [
            Held(name, each["pid"], each["start_ticks"], each["note"], each["status"]) for name, each in found.items()
        ]

    def start(
        self, name: str, command: Sequence[str], env: Mapping[str, str], descriptors: Sequence[int], note: Any
    ) -> Held:
        """Start a program; raises OSError where that fails.

        Args:
            name: unique among running programs.
            descriptors: its output, then those it inherits, as 3, 4 and so on.
        """
        answer = self._ask("start", descriptors, name=name, command=list(command), env=dict(env), note=note)
        held = Held(name, answer["pid"], answer["start_ticks"], note)
        self.pids.add(held.pid)
        return held

    def signal(self, name: str, number: int) -> None:
        """Send a signal to all of a program's group, if it runs."""
        self._ask("signal", name=name, number=int(number))

    def status(self, name: str) -> int | None:
        """Return how a program ended; None while it runs."""
        found = self._ask("status", name=name)["status"]
        return None if found is None else int(found)

    def forget(self, name: str) -> None:
        """Drop a program that has ended."""
        self._ask("forget", name=name)

    def end(self, held: Held) -> None:
        """Kill a program and drop it; returns when it is gone."""
        self.signal(held.name, signal.SIGKILL)
        while self.status(held.name) is None:
            time.sleep(_LOOK_EVERY_S)
        self.forget(held.name)

    def orphans(self) -> set[int]:
        """Return the orphans of programs, which are the holder's children."""
        found: set[int] = set()
        for task in Path(f"/proc/{self.pid}/task").glob("*/children"):
            with suppress(OSError):
                found |= set(map(int, task.read_text(encoding="ascii").split()))
        return found - self.pids

    def kill_orphan(self, pid: int) -> None:
        """Kill an orphan of a program."""
        self._ask("kill", pid=pid)

    def close(self) -> None:
        """Close the channel; a holder of this process alone ends, with all its programs."""
        self._channel.close()
        if self._own is not None:
            self._own.wait()

    def _ask(self, verb: str, descriptors: Sequence[int] = (), **of: Any) -> dict[str, Any]:
        number = next(self._ids)
        try:
            wire.send(self._channel, {"verb": verb, "of": of, "id": number}, descriptors)
            answer = self._answer_to(number)
        except (OSError, ValueError) as error:
            raise HolderGoneError(f"the holder cannot be asked to {verb}: {error}") from error
        if answer is None:
            raise HolderGoneError(f"the holder does not answer to {verb}")
        if "errno" in answer:
            raise OSError(answer["errno"], answer["error"])
        if "error" in answer:
            raise RuntimeError(f"the holder failed to {verb}: {answer['error']}")
        return answer

    def _answer_to(self, number: str) -> dict[str, Any] | None:
        """Return the answer to a request; None where the holder is gone, or late."""
        deadline = time.monotonic() + _ANSWER_WITHIN_S
        while select.select([self._channel], [], [], max(0.0, deadline - time.monotonic()))[0]:
            received = wire.receive(self._channel)
            if received is None:
                break
            answer, more = received
            wire.close(more)
            if answer.get("id") == number:  # others are of an earlier agent, which never read them
                return answer
        return None
