"""Remote files of an artifact: the interface of its sources. Standard library only."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


class InterruptedTransferError(Exception):
    """The transfer broke off, or is temporarily impossible: worth a retry.

    Args:
        after_s: the server's Retry-After.
    """

    def __init__(self, message: str, *, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file.

    Attributes:
        first: the byte that `pieces` begins with: the requested one, or 0 where only the whole file is available.
        size_bytes: of the whole file; None where unknown.
        filename: its name on the server; may be empty.
    """

    first: int
    size_bytes: int | None
    filename: str
    pieces: Iterator[bytes]


class Remote(Protocol):
    """One remote file."""

    @property
    def path(self) -> str:
        """Return its path in the artifact; empty where it is the whole artifact."""

    def open(self, first: int) -> AbstractContextManager[Opened]:
        """Open it at a byte offset.

        Raises:
            InterruptedTransferError: a retry may succeed.
            ModelError: a retry is useless.
        """
