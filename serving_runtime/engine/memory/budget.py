"""The memory that models may take together: claimed before a load, settled after it, given back with the model.

Before a load its need is estimated from the files. Measured with ONNX Runtime, opening a model of 16, 64 and 200 MiB
takes 2.3, 1.3 and 1.3 times its file for a moment, and 1.0 times for good. After the load what it was measured to take
counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from serving_runtime.common.errors import ModelError

SHARE = 0.8
"""Of the process's memory for models; the rest is for requests, and for what a model takes as it serves."""

PEAK = 1.3
"""Of a model's files, while they are opened."""

NOT_ITS_OWN_BYTES = 64 * 2**20
"""That a process may grow by beside a load, for its libraries and for requests."""

COPIED_BYTES = 16 * 2**20
"""Files up to this size are in memory once more while they are opened."""


class NoRoom(ModelError):  # noqa: N818 - as the others in errors.py
    """A model does not fit beside those that are loaded; it may later."""

    http_status = 503
    grpc_code = "UNAVAILABLE"


class Claim:
    """Memory that a load, and then its model, holds."""

    def __init__(self, name: str, size_bytes: int) -> None:
        self.name = name
        self.size_bytes = size_bytes


class Budget:
    """Counts claims; lives on the event loop. Without a limit all of them are granted."""

    def __init__(self, limit_bytes: int | None) -> None:
        self.limit_bytes = limit_bytes
        self._claims: set[Claim] = set()

    @property
    def used_bytes(self) -> int:
        return sum(claim.size_bytes for claim in self._claims)

    def claim(self, name: str, size_bytes: int) -> Claim:
        """Return a claim; raises NoRoom, which says the figures."""
        if self.lacking(size_bytes) > 0:
            raise self.refusal(name, size_bytes)
        claim = Claim(name, size_bytes)
        self._claims.add(claim)
        return claim

    def lacking(self, size_bytes: int) -> int:
        """Return how many bytes more would have to be free; at most 0 where there is room."""
        return self.used_bytes + size_bytes - self.limit_bytes if self.limit_bytes is not None else 0

    def could_fit(self, size_bytes: int) -> bool:
        """Return whether there would be room if nothing were claimed."""
        return self.limit_bytes is None or size_bytes <= self.limit_bytes

    def refusal(self, name: str, size_bytes: int) -> NoRoom:
        assert self.limit_bytes is not None  # noqa: S101 - without a limit nothing is refused
        free = max(0, self.limit_bytes - self.used_bytes)
        return NoRoom(
            f"model '{name}' needs {shown(size_bytes)} of memory, but {shown(free)} of {shown(self.limit_bytes)} for "
            "models are free; unload others, or raise --model-memory-budget-bytes"
        )

    def release(self, claim: Claim) -> None:
        self._claims.discard(claim)


class Idle(NamedTuple):
    """A loaded model that does nothing now."""

    last_used: float
    size_bytes: int
    name: str


def victims(lacking_bytes: int, idle: Iterable[Idle]) -> list[str] | None:
    """Return which models to unload, the least recently used first; None where all of them would not do. Pure."""
    chosen: list[str] = []
    for model in sorted(idle):
        if lacking_bytes <= 0:
            break
        chosen.append(model.name)
        lacking_bytes -= model.size_bytes
    return chosen if lacking_bytes <= 0 else None


def estimate_bytes(file_bytes: int) -> int:
    """Return the most memory that opening files of this size takes."""
    return int(file_bytes * PEAK) + min(file_bytes, COPIED_BYTES)


def shown(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB"
