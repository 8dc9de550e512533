"""State files of the agent, on a disk that may be full and that others may write to.

    put --written--> right <--mend-- somebody else has changed it
     '---no room--> kept in memory --retry, there is room--> right

A full disk delays the agent's status, and ends nothing. A file that fits into its present blocks is overwritten in
place then, so that heartbeats go on; a reader may then see half of it once, and reads again.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integrations.clusters.base import Component
from integrations.clusters.local.files import write_text

log = logging.getLogger(__name__)

DISK = "disk"
"""The cluster component that reports a full disk; absent while it is not full."""
_BLOCK_BYTES = 512
"""Of `st_blocks`, whatever the file system."""
_Look = tuple[int, int, int]  # time of change, size, inode


@dataclass(slots=True)
class _File:
    """Desired content of a file, and its look once written; None while it could not be."""

    text: str
    look: _Look | None


class StateFiles:
    """Use it from one thread."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._files: dict[Path, _File] = {}
        self._problem = ""

    def put_json(self, path: Path, value: Mapping[str, Any]) -> None:
        """Write `value` to `path`, as soon as the disk has room."""
        self.put(path, json.dumps(value, indent=1, sort_keys=True))

    def put(self, path: Path, text: str) -> None:
        """Write `text` to `path`, as soon as the disk has room."""
        self._files[path] = _File(text, None)
        self._write(path)

    def remove(self, path: Path) -> None:
        """Remove a file, written or not."""
        self._files.pop(path, None)
        path.unlink(missing_ok=True)

    def retry(self) -> None:
        """Retry failed writes; call it every second."""
        for path in [path for path, file in self._files.items() if file.look is None]:
            self._write(path)

    def mend(self) -> None:
        """Rewrite files that others have changed or removed: one look at each file."""
        for path, file in self._files.items():
            if file.look is not None and file.look != _look(path):
                log.warning("%s was changed by somebody else and is written again", path)
                self._write(path)

    @property
    def component(self) -> Component | None:
        """Return the disk's component; None while all files are written."""
        return Component(DISK, ready=False, message=self._problem) if self._problem else None

    def _write(self, path: Path) -> None:
        file = self._files[path]
        try:
            write_text(path, file.text)
        except OSError as error:
            in_place = _overwritten(path, file.text)
            file.look = _look(path) if in_place else None
            if not self._problem:
                name = path.relative_to(self._home) if path.is_relative_to(self._home) else path.name
                self._problem = (
                    f"FAIRLEAD_HOME/{name} cannot be written ({error.strerror}): what serves goes on, and changes wait "
                    "until it can"
                )
                log.error("%s", self._problem)
            return
        file.look = _look(path)
        if self._problem and all(each.look is not None for each in self._files.values()):
            log.info("there is room again: all is written that could not be")
            self._problem = ""


def _overwritten(path: Path, text: str) -> bool:
    """Overwrite the file's blocks with `text`, padded by spaces; returns whether it fitted."""
    content = text.encode()
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        found = os.fstat(handle)
        if len(content) > found.st_blocks * _BLOCK_BYTES:
            return False
        content = content.ljust(found.st_size)
        return os.pwrite(handle, content, 0) == len(content)
    except OSError:
        return False
    finally:
        os.close(handle)


def _look(path: Path) -> _Look | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
