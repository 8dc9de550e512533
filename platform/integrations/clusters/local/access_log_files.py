"""Files of the gateway's access log: Envoy writes the current one, the agent rotates it, the worker reads and deletes.

    access-log/access.log                 open in Envoy
    access-log/access.<nanoseconds>.log   set aside; complete once a newer file exists
    access-log/dropped.json               what was deleted for the disk that it takes, before it was read

A file is renamed first, and Envoy then opens the name again, which ends the renamed one. So a file is complete where a
newer one exists, whenever agent or Envoy are killed.
"""

import json
import logging
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
