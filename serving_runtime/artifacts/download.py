"""Resumable download of one file.

Received bytes stay in the file when a connection breaks, and when this process ends: the next download resumes there.
So does a retry, after exponential back-off; each try that receives anything resets the wait.
"""

import errno
import hashlib
import os
import random
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from serving_runtime.artifacts.remotes import InterruptedTransferError, Opened, Remote
from serving_runtime.common.errors import ModelError

Say = Callable[[str], None]
"""Logs one line."""

_MIB = 1 << 20
_LOG_EVERY_S = 5.0


class NoRoomError(ModelError):
    """This machine's disk is full."""


class TooLargeError(Exception):
    """The file is larger than the limit."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Retry policy.

    Attributes:
        tries: consecutive failures without a received byte.
        first_s, longest_s: waits between them.
        deadline_s: after which no further try begins.
    """

    tries: int = 8
    first_s: float = 0.5
    longest_s: float = 30.0
    deadline_s: float = 3600.0

    def wait_s(self, failures: int) -> float:
        """Return the wait after so many consecutive failures, with jitter so that pods do not retry all at once."""
        longest_s: float = min(self.longest_s, self.first_s * 2 ** (failures - 1))
        return longest_s * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


@dataclass(frozen=True, slots=True)
class Received:
    """A downloaded file: its sha256 in hex, and its name on the server."""

    sha256: str
    filename: str


def receive(remote: Remote, file: Path, patience: Patience, say: Say, *, max_bytes: int | None = None) -> Received:
    """Download the remote file; `file` may hold the beginning of it.

    Raises:
        ModelError: it is not available.
        NoRoomError: this machine's disk is full; the partial file is removed.
        TooLargeError: it has more than `max_bytes`.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    attempt = _Attempt(remote, file, say, max_bytes)
    ends_at = time.monotonic() + patience.deadline_s
    failures = 0
    while True:
        before = attempt.size
        try:
            return attempt.go_on()
        except InterruptedTransferError as error:
            failures = 1 if attempt.size > before else failures + 1
            wait_s = max(error.after_s, patience.wait_s(failures))
            if failures >= patience.tries or time.monotonic() + wait_s > ends_at:
                raise ModelError(
                    f"{remote} could not be fetched after {failures} tries in a row, with {attempt.size} bytes here: "
                    f"{error}"
                ) from error
            say(f"{error}; trying again in {wait_s:.1f} s, with {attempt.size} bytes here")
            time.sleep(wait_s)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                file.unlink(missing_ok=True)
                raise _full(remote, file, attempt.size) from error
            raise


class _Attempt:
    """The received part of a file, with its hash."""

    def __init__(self, remote: Remote, file: Path, say: Say, max_bytes: int | None) -> None:
        self._remote, self._file, self._say, self._max_bytes = remote, file, say, max_bytes
        self.size = 0
        self._hash = hashlib.sha256()
        if file.exists() and file.stat().st_size:
            os.truncate(
                file, file.stat().st_size - 1
            )  # so that a request remains to be made, whose response has the name
            with file.open("rb") as content:
                self._hash = hashlib.file_digest(content, "sha256")
                self.size = content.tell()
            say(f"going on with {remote} after the {self.size} bytes that are here")

    def go_on(self) -> Received:
        with self._remote.open(self.size) as opened, self._file.open("ab") as content:
            if opened.first != self.size or self.size > (opened.size_bytes or self.size):
                content.truncate(0)
                self.size, self._hash = 0, hashlib.sha256()
            if opened.first > self.size:
                raise InterruptedTransferError(f"{self._remote} begins at byte {opened.first}, which was not asked for")
            self._refuse(opened.size_bytes or 0)
            progress = _Progress(self._say, str(self._remote), opened)
            for piece in opened.pieces:
                self._refuse(self.size + len(piece))
                content.write(piece)
                self._hash.update(piece)
                self.size += len(piece)
                progress.log(self.size)
            content.flush()
            os.fsync(content.fileno())
            if opened.size_bytes is not None and self.size != opened.size_bytes:
                raise InterruptedTransferError(f"{self._remote} ended after {self.size} of {opened.size_bytes} bytes")
            self._say(f"fetched {self._remote}: {self.size} bytes")
            return Received(self._hash.hexdigest(), opened.filename)

    def _refuse(self, size: int) -> None:
        if self._max_bytes is not None and size > self._max_bytes:
            self._file.unlink(missing_ok=True)
            raise TooLargeError(f"{self._remote} has {size} bytes or more, {self._max_bytes} are allowed here")
        if size > self.size and size - self.size > shutil.disk_usage(self._file.parent).free:
            self._file.unlink(missing_ok=True)
            raise _full(self._remote, self._file, size)


class _Progress:
    """Logs the progress of a file, every few seconds."""

    def __init__(self, say: Say, name: str, opened: Opened) -> None:
        self._say, self._name, self._all = say, name, opened.size_bytes
        self._logged_at = time.monotonic()
        say(f"fetching {name}{'' if self._all is None else f', {self._all / _MIB:.1f} MiB'}")

    def log(self, size: int) -> None:
        now = time.monotonic()
        if now - self._logged_at >= _LOG_EVERY_S:
            self._logged_at = now
            share = f" of {self._all / _MIB:.1f} MiB ({100 * size // self._all} %)" if self._all else " MiB"
            self._say(f"{self._name}: {size / _MIB:.1f}{share}")


def _full(remote: Remote, file: Path, size: int) -> NoRoomError:
    return NoRoomError(
        f"there is no room in {file.parent} for {remote}, which has {size} bytes or more; give the volume more room"
    )
