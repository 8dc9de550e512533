"""Sampling share of the payload tap: fixed, or read from a file while the server runs."""

import logging
from pathlib import Path

logger = logging.getLogger(__name__)


class Share:
    """A share of all requests, 0 to 1.

    Args:
        file: holds the share as text, such as `0.25`, and may be replaced at any time; a missing file is a share of 0.
            None for a fixed share.

    Attributes:
        now: the share as last read.
    """

    def __init__(self, share: float, file: Path | None = None) -> None:
        self.now = share
        self._file = file
        self._seen: tuple[int, int] | None = None
        if file is not None:
            self.now = 0.0
            self.look()

    def look(self) -> None:
        """Read the file if it has changed; invalid content is a share of 0, and logged."""
        if self._file is None:
            return
        try:
            found = self._file.stat()
            if self._seen == (found.st_mtime_ns, found.st_ino):
                return
            self._seen = (found.st_mtime_ns, found.st_ino)
            self.now = parse(self._file.read_text())
        except FileNotFoundError:
            self.now, self._seen = 0.0, None
        except (OSError, ValueError) as error:
            self.now = 0.0
            logger.error("payload tap: nothing is recorded, since %s cannot be read: %s", self._file, error)


def parse(text: str) -> float:
    """Return the share in `text`; raises ValueError where it is invalid."""
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError(f"{text.strip()!r} is not a share from 0 to 1")
    return share
