"""Spool directory reader: files of a `FolderSink` as batches for a receiver, read by a process that has its token.

The writer opens models and has no token, so the folder is untrusted: only regular files of a bounded size are read,
links are not followed, and names cannot leave the folder. Anything else is removed.
"""

import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path

MAX_BATCH_BYTES = 32 << 20
"""The control plane's limit of a request."""
_ENTRIES_AT_ONCE = 4096


class Spool:
    """The folder, whose files are read in the order of their names; raises OSError where it is no folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)

    def names(self) -> list[str]:
        """Return the names of pending files, oldest first; of a folder with very many entries, some."""
        with os.scandir(self._folder) as entries:
            found = [each.name for each in islice(entries, _ENTRIES_AT_ONCE) if not each.is_dir(follow_symlinks=False)]
        return sorted(name for name in found if name.endswith(".jsonl") and not name.startswith("."))

    def batch(self, name: str) -> bytes | None:
        """Return the lines of a file as a JSON array; None where it is too large, empty or not a file."""
        try:
            # Without O_NONBLOCK opening a pipe would block.
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
        """Remove a file; raises OSError on failure."""
        with suppress(FileNotFoundError):  # the writer dropped it, for lack of room
            os.unlink(name, dir_fd=self._folder)

    def close(self) -> None:
        os.close(self._folder)
