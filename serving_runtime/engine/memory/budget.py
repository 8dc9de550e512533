"""Memory budget of all models: claimed before a load, settled after it, released with the model.

Before a load its need is estimated from the files. Measured with ONNX Runtime, opening a model of 16, 64 and 200 MiB
takes 2.3, 1.3 and 1.3 times its file for a moment, and 1.0 times for good. After the load the measured memory counts.
"""

from collections.abc import Iterable
from typing import NamedTuple

from serving_runtime.common.errors import NoRoom

SHARE = 0.8
"""Share of the process's memory for models; the rest is for requests, and for models' memory while serving."""

PEAK = 1.3
"""Ratio of peak memory to the size of a model's files, while they are opened."""

NOT_ITS_OWN_BYTES = 64 * 2**20
"""Growth of a process during a load that is not the model's: libraries and requests."""

LEAST_BYTES = 128 << 10
"""What the smallest model takes, which is not measured while others are loaded."""
COPIED_BYTES = 16 * 2**20
"""Files up to this size are in memory a second time while they are opened."""


class Claim:
    """Memory held by a load, and then by its model."""

    def __init__(self, name: str, size_bytes: int, budget: "Budget") -> None:
        self.name = name
        self._size_bytes = size_bytes
        self._budget: Budget | None = budget
        budget.used_bytes += size_bytes

    @property
    def size_bytes(self) -> int:
        return self._size_bytes

    @size_bytes.setter
    def size_bytes(self, size_bytes: int) -> None:
        if self._budget is not None:
            self._budget.used_bytes += size_bytes - self._size_bytes
        self._size_bytes = size_bytes

    def end(self) -> None:
        """Hold nothing from now on."""
        if self._budget is not None:
            self._budget.used_bytes -= self._size_bytes
            self._budget = None


class Budget:
    """Counts claims; lives on the event loop. Grants all of them without a limit.

    Attributes:
        used_bytes: of all claims; kept up by each of them, since thousands of models may be loaded.
    """

    def __init__(self, limit_bytes: int | None) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0

    def claim(self, name: str, size_bytes: int) -> Claim:
        """Return a claim; raises NoRoom with the figures."""
        if self.lacking(size_bytes) > 0:
            raise self.refusal(name, size_bytes)
        return Claim(name, size_bytes, self)

    def lacking(self, size_bytes: int) -> int:
        """Return how many more bytes must be free; at most 0 where there is room."""
        return self.used_bytes + size_bytes - self.limit_bytes if self.limit_bytes is not None else 0

    def could_fit(self, size_bytes: int) -> bool:
        """Return whether there would be room if nothing were claimed."""
        return self.limit_bytes is None or size_bytes <= self.limit_bytes

    def refusal(self, name: str, size_bytes: int) -> NoRoom:
        assert self.limit_bytes is not None  # noqa: S101 - without a limit nothing is refused
        if not self.could_fit(size_bytes):
            return NoRoom(
                f"model '{name}' needs {shown(size_bytes)} of memory and never fits: all models together may take "
                f"{shown(self.limit_bytes)}; make it smaller, or raise --model-memory-budget-bytes"
            )
        free = max(0, self.limit_bytes - self.used_bytes)
        return NoRoom(
            f"model '{name}' needs {shown(size_bytes)} of memory, but {shown(free)} of {shown(self.limit_bytes)} for "
            "models are free; unload others, or raise --model-memory-budget-bytes"
        )

    def release(self, claim: Claim) -> None:
        claim.end()


class Idle(NamedTuple):
    """An idle loaded model."""

    last_used: float
    size_bytes: int
    name: str


def victims(lacking_bytes: int, idle: Iterable[Idle]) -> list[str] | None:
    """Return the models to unload, the least recently used first; None where all of them would not suffice. Pure."""
    chosen: list[str] = []
    for model in sorted(idle):
        if lacking_bytes <= 0:
            break
        chosen.append(model.name)
        lacking_bytes -= model.size_bytes
    return chosen if lacking_bytes <= 0 else None


def estimate_bytes(file_bytes: int) -> int:
    """Return the most memory that opening files of this size takes."""
    return max(int(file_bytes * PEAK) + min(file_bytes, COPIED_BYTES), LEAST_BYTES)


def shown(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB"
