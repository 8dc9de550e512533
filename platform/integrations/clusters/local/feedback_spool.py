"""Labels that the gateway took, until the control plane has them: the agent writes files, a worker reads and deletes.

    feedback/<nanoseconds>.jsonl    one write of the agent, whole and durable: a line for each request

What waits is bounded, for each service too, so that neither a control plane that is away nor one caller fills the disk.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
MOST_SERVICE_BYTES = 32 << 20
_SUFFIX = ".jsonl"


@dataclass(frozen=True, slots=True)
class Batch:
    """The labels of one request.

    Attributes:
        service: `namespace/name`.
        by: the caller's name in its token; empty without one.
        at: Unix seconds of the request.
        labels: in the form of the API's JSON, already checked.
    """

    service: str
    by: str
    at: float
    labels: list[dict[str, Any]]


class Spool:
    """The agent's side; use it from one thread at a time."""

    def __init__(
        self, folder: Path, *, most_bytes: int = MOST_BYTES, most_service_bytes: int = MOST_SERVICE_BYTES
    ) -> None:
        self._folder = folder
        self._most_bytes = most_bytes
        self._most_service_bytes = most_service_bytes
        self._files: dict[str, Counter[str]] = {}  # by name, the bytes of each service

    def write(self, batches: Sequence[Batch]) -> list[str]:
        """Write the batches durably; returns for each why it is not taken, empty where it is.

        Raises:
            OSError: nothing is written.
        """
        self._look()
        waiting: Counter[str] = Counter()
        for each in self._files.values():
            waiting.update(each)
        total, refusals, lines, sizes = waiting.total(), [], [], Counter[str]()
        for batch in batches:
            line = json.dumps(asdict(batch), separators=(",", ":")).encode() + b"\n"
            refusal = self._refusal(batch.service, waiting[batch.service] + len(line), total + len(line))
            refusals.append(refusal)
            if not refusal:
                lines.append(line)
                total += len(line)
                waiting[batch.service] += len(line)
                sizes[batch.service] += len(line)
        if lines:
            self._files[self._write(b"".join(lines))] = sizes
        return refusals

    def _refusal(self, service: str, of_service: int, of_all: int) -> str:
        if of_service > self._most_service_bytes:
            which, most = f"service {service}", self._most_service_bytes
        elif of_all > self._most_bytes:
            which, most = "all services", self._most_bytes
        else:
            return ""
        return f"the labels of {which} that wait for the control plane take {most >> 20} MiB, the most that is kept"

    def _look(self) -> None:
        """Find out which files are left, and what is in those of an earlier agent."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        there = {path.name: path for path in waiting_files(self._folder)}
        self._files = {name: sizes for name, sizes in self._files.items() if name in there}
        for name in there.keys() - self._files.keys():
            sizes: Counter[str] = Counter()
            for line in _lines(there[name]):
                sizes[str(json.loads(line)["service"])] += len(line)
            self._files[name] = sizes

    def _write(self, content: bytes) -> str:
        name = f"{time.time_ns()}{_SUFFIX}"
        begun = self._folder / f".{name}"
        with os.fdopen(os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        begun.rename(self._folder / name)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return name


def waiting_files(folder: Path) -> list[Path]:
    """Return the files that wait, oldest first."""
    return sorted(folder.glob(f"[0-9]*{_SUFFIX}"), key=lambda path: int(path.stem))


def batches(path: Path) -> Iterator[Batch]:
    """Yield the batches of a file."""
    for line in _lines(path):
        yield Batch(**json.loads(line))


def _lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().splitlines(keepends=True)
    except FileNotFoundError:
        return []  # the worker has read it meanwhile
