"""Event sinks on this machine: a JSON lines file, or a spool directory of such files."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from serving_runtime.telemetry.tap.writing import written

_FULL_BYTES = 1 << 20
_OLD_S = 1.0

Event = dict[str, Any]
"""A CloudEvent for `written`: attributes by name, and `data`."""


class SinkError(Exception):
    """Events could not be written; the text says why.

    Attributes:
        taken: number of events that were written nevertheless.
    """

    def __init__(self, reason: str, taken: int = 0) -> None:
        super().__init__(reason)
        self.taken = taken


class Sink(Protocol):
    """Writes events on the tap's own thread; raises SinkError.

    `flush` writes what was held back; it is called after an idle period, and before `close`.

    Attributes:
        gather_s: how long the tap waits for further events, to write them together.
    """

    gather_s: float

    def write(self, events: list[Event]) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class FileSink:
    """Appends a line per event; a file beyond its limit is renamed to `<name>.1`, replacing an earlier one."""

    gather_s = 0.0

    def __init__(self, path: Path, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._file = path.open("ab")

    def write(self, events: list[Event]) -> None:
        lines = [written(event) + b"\n" for event in events]
        size = sum([len(line) for line in lines])
        try:
            if self._file.tell() and self._file.tell() + size > self._max_bytes:
                self._file.close()
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                self._file = self._path.open("ab")
            self._file.writelines(lines)
            self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: an earlier reopening failed
            raise SinkError(f"{self._path}: {error}") from error

    def flush(self) -> None:
        """Does nothing: every write is flushed."""

    def close(self) -> None:
        self._file.close()


class FolderSink:
    """Spool directory writer: files with a line per event, complete and immutable, for another process to remove.

    Events gather in a hidden file that gets its name, which sorts by time, when it is full or a second old. Events that
    are written together are in one file. Where no process removes files the oldest are deleted.

    Args:
        max_bytes: of all files together; one with a large event may be larger.
    """

    gather_s = 0.0

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._began = 0.0
        self._file: BinaryIO | None = self._opened()

    def write(self, events: list[Event]) -> None:
        lines = [written(event) + b"\n" for event in events]
        try:
            self._file = file = self._file or self._opened()
            if not file.tell():
                self._began = time.monotonic()
            file.writelines(lines)
            if file.tell() >= _FULL_BYTES or time.monotonic() - self._began >= _OLD_S:
                self._publish(file)
        except OSError as error:
            raise SinkError(f"{self._folder}: {error}") from error

    def flush(self) -> None:
        try:
            if self._file is not None and self._file.tell():
                self._publish(self._file)
        except OSError as error:
            raise SinkError(f"{self._folder}: {error}") from error

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._hidden.unlink(missing_ok=True)

    @property
    def _hidden(self) -> Path:
        return self._folder / ".open"

    def _opened(self) -> BinaryIO:
        """Begin a file; one left by a killed server is dropped, its last line may be incomplete."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.fdopen(os.open(self._hidden, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")

    def _publish(self, file: BinaryIO) -> None:
        self._file = None
        file.close()
        self._hidden.replace(self._folder / f"{time.time_ns():020}.jsonl")
        sizes = {}
        for path in sorted(self._folder.glob("*.jsonl"), reverse=True):
            with suppress(FileNotFoundError):  # removed just now
                sizes[path] = path.stat().st_size
                if len(sizes) > 1 and sum(sizes.values()) > self._max_bytes:
                    path.unlink()
