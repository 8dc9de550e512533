"""Common interface of model sources: files that are opened one after the other and read in pieces."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

CHUNK_BYTES = 1 << 20


class Content(Protocol):
    """An open file; its size in bytes is None where it is unknown before reading."""

    @property
    def size_bytes(self) -> int | None:
        """Return its size."""

    def read(self, size: int = ..., /) -> bytes:
        """Return the next bytes, at least one; empty at the end. Raises Unavailable where it breaks off."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file at a source.

    Attributes:
        path: below the folder that is imported; empty for a single file.
        size_bytes: None where it is unknown before opening.
    """

    path: str
    size_bytes: int | None
    open: Callable[[], AbstractContextManager[Content]]
