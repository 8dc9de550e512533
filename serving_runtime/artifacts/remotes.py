"""What an artifact's files come from. Standard library only."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol


class InterruptedTransferError(Exception):
    """It broke off, or cannot be had just now: worth another try.

    Args:
        after_s: how long the other side asks to wait.
    """

    def __init__(self, message: str, *, after_s: float = 0.0) -> None:
        super().__init__(message)
        self.after_s = after_s


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file.

    Attributes:
        first: the byte that `pieces` begins with: the one that was asked for, or 0 where only all can be had.
        size_bytes: of the whole file; None where nobody says.
        filename: what the other side calls it; empty where it says nothing.
    """

    first: int
    size_bytes: int | None
    filename: str
    pieces: Iterator[bytes]


class Remote(Protocol):
    """One file elsewhere."""

    @property
    def path(self) -> str:
        """Return its path in the artifact; empty where it is the whole artifact."""

    def open(self, first: int) -> AbstractContextManager[Opened]:
        """Open it at a byte.

        Raises:
            InterruptedTransferError: not now.
            ModelError: not as things are.
        """
