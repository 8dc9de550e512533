"""Spool directory: files of a `FolderSink` as batches for a receiver, read by a process that has its token.

The writer opens models and has no token, so that nothing in the folder is believed: only regular files of a bounded
size are read, no link is followed, and names lead nowhere but into the folder. What is no such file is removed.
"""

import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path

MAX_BATCH_BYTES = 32 << 20
"""What the control plane takes at once."""
_ENTRIES_AT_ONCE = 4096


class Spool:
    """The folder, whose files are taken in the order of their names; raises OSError where it is none."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def names(self) -> list[str]:
        """Return the names of what waits, the oldest first; of a folder with very many entries, some."""
        with os.scandir(self._folder) as entries:
            found = [each.name for each in islice(entries, _ENTRIES_AT_ONCE) if not each.is_dir(follow_symlinks=False)]
        return sorted(name for name in found if name.endswith(".jsonl") and not name.startswith("."))

    def batch(self, name: str) -> bytes | None:
        """Return the lines of a file as a JSON array; None where it is too large, empty or no file."""
        try:
            # Without O_NONBLOCK a pipe would be waited for.
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=self._folder)
        except OSError:  # gone meanwhile, or a link
            return None
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_BATCH_BYTES - 1:
            os.close(file)
            return None
        with os.fdopen(file, "rb") as opened:
            lines = opened.read(MAX_BATCH_BYTES).strip(b"\n")
        if not lines or len(lines) > MAX_BATCH_BYTES - 2:  # it grew meanwhile
            return None
        return b"[%b]" % lines.replace(b"\n", b",")

    def remove(self, name: str) -> None:
        """Remove a file; raises OSError where it stays."""
        with suppress(FileNotFoundError):  # the writer dropped it, for want of room
            os.unlink(name, dir_fd=self._folder)

    def close(self) -> None:
        os.close(self._folder)
