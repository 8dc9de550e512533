"""Files of the gateway's access log: Envoy writes the current one, the agent rotates it, the worker reads and deletes.

    access-log/access.log                 open in Envoy
    access-log/access.<nanoseconds>.log   set aside; complete once a newer file exists
    access-log/dropped.json               what was deleted for the disk that it takes, before it was read

A file is renamed first, and Envoy then opens the name again, which ends the renamed one. So a file is complete where a
newer one exists, whenever agent or Envoy are killed.
"""

import io
import json
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from integrations.clusters.local.files import write_json

log = logging.getLogger(__name__)

SEGMENT_BYTES = 64 << 20
"""Size at which a file is set aside."""
KEPT_BYTES = 1 << 30
"""Most bytes of files that were set aside: about two million requests that wait to be read."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the log; one that is complete gets no further lines."""

    path: Path
    is_complete: bool


class AccessLogFiles:
    """The files in `folder`, which only this user may open."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, kept_bytes: int = KEPT_BYTES) -> None:
        self._folder = folder
        self.current = folder / "access.log"
        self._dropped = folder / "dropped.json"
        self._segment_bytes = segment_bytes
        self._kept_bytes = kept_bytes

    def begin(self) -> None:
        """Make an empty file for an Envoy to be started, when no other runs; raises OSError."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.current.exists() and self.current.stat().st_size:
            self._rename()
        self.current.touch(mode=0o600)

    def set_aside(self) -> bool:
        """Rename a large file; returns whether Envoy has to open the name again. Raises OSError."""
        try:
            found = self.current.stat()
        except FileNotFoundError:
            return self._folder.is_dir()
        self.current.chmod(0o600)  # Envoy makes files that others may read; the folder is closed to them
        if found.st_size < self._segment_bytes:
            return False
        self._rename()
        return True

    def limit(self) -> None:
        """Delete the oldest files while those set aside take more disk than is kept; counts them. Raises OSError."""
        waiting = [(path, path.stat().st_size) for path in self._aside()]
        excess = sum(size for _, size in waiting) - self._kept_bytes
        for path, size in waiting:
            if excess <= 0:
                return
            write_json(self._dropped, {"bytes": self.dropped_bytes() + size})
            path.unlink(missing_ok=True)
            excess -= size
            log.error("%s was deleted unread (%d bytes): usage is not read for long; is the worker up?", path, size)

    def dropped_bytes(self) -> int:
        """Return the bytes that were ever deleted before they were read to their end."""
        try:
            return int(json.loads(self._dropped.read_text())["bytes"])
        except (OSError, ValueError, KeyError, TypeError):
            return 0

    def files(self) -> Iterator[LogFile]:
        """Yield the files, oldest first. One that is renamed meanwhile may be missing, and is there the next time."""
        aside = self._aside()
        has_current = self.current.exists()
        for path in aside:
            yield LogFile(path, is_complete=has_current or path != aside[-1])
        if has_current:
            yield LogFile(self.current, is_complete=False)

    def _aside(self) -> list[Path]:
        return sorted(self._folder.glob("access.*.log"))

    def _rename(self) -> None:
        self.current.rename(self._folder / f"access.{time.time_ns()}.log")


class LogTail:
    """Reads the lines that Envoy writes from now on, whatever the files are; use it from one thread at a time."""

    def __init__(self, current: Path) -> None:
        self._current = current
        self._file: io.FileIO | None = None
        self._offset = 0
        self._has_begun = False

    def lines(self, most_bytes: int) -> list[bytes]:
        """Return complete lines since the last call, a next call the ones beyond `most_bytes`; the first only begins.

        A renamed file is read to its end. A reader that is behind by more than one leaves out those between it and the
        current one. Raises OSError.
        """
        file = self._file or self._opened()
        if file is None:
            return []
        is_renamed = self._is_renamed(file)  # before it is read: then no line comes after the last one
        piece = os.pread(file.fileno(), most_bytes, self._offset)
        end = piece.rfind(b"\n") + 1
        if not end and len(piece) == most_bytes:
            end = len(piece)  # no line of the gateway is so long
        self._offset += end
        if is_renamed and len(piece) < most_bytes:
            self._forget()
        return piece[:end].removesuffix(b"\n").split(b"\n") if end else []

    def close(self) -> None:
        """Read no more; the next call of `lines` begins at the end again."""
        self._forget()
        self._has_begun = False

    def _opened(self) -> io.FileIO | None:
        """Return the current file, to be read from its end at first, and later from its begin."""
        is_first, self._has_begun = not self._has_begun, True
        try:
            self._file = io.FileIO(self._current)
        except FileNotFoundError:
            return None  # what Envoy writes to the file that it makes is new
        self._offset = os.fstat(self._file.fileno()).st_size if is_first else 0
        return self._file

    def _is_renamed(self, file: io.FileIO) -> bool:
        """Return whether Envoy writes to another file."""
        try:
            return not os.path.samestat(self._current.stat(), os.fstat(file.fileno()))
        except FileNotFoundError:
            return False  # Envoy has not opened the name again

    def _forget(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
