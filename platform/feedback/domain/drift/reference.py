"""Reference of a feature: the shares of its bins, how sure they are, and how uneven they are in time. Pure.

Values of neighbouring requests depend on each other: rows of one request, a client that sends the same one again, the
time of day. So the number of rows in a bin varies by more than it does for independent rows. By how much is measured
while the reference is learned: blocks of time are joined to batches of 1, 2, 4 … 1,024 blocks, and the inflation is the
largest ratio of the variance of a batch's rows in the bin to that of independent rows (batch means). A rare bin says
little about itself, so its inflation is at least that of all bins together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from feedback.domain.drift.features import Floats

LEVELS = 11
_LEAST_BATCHES = 16
_UNKNOWN_INFLATION = 2.0
_SURE = 3.0  # standard errors of a reference's bounds


@dataclass(frozen=True, slots=True, eq=False)
class Learning:
    """Sums of a reference that is being learned; per level of batches, and per event.

    Attributes:
        counts: [events] rows in all.
        batches: [levels] complete ones.
        pending: [levels, events] and `pending_rows` [levels]: of a first half that waits for its second.
        waits: [levels] 1 where there is one.
        squares, products: [levels, events] sums of k k and of k n, with k of a batch's n rows in the event.
        rows_squares: [levels] sums of n n; `rows` of n.
    """

    counts: Floats
    batches: Floats
    waits: Floats
    pending: Floats
    pending_rows: Floats
    squares: Floats
    products: Floats
    rows_squares: Floats
    rows: Floats

    @property
    def total(self) -> int:
        """Return how many rows there are."""
        return int(self.rows[0])


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What a feature is compared with.

    Attributes:
        counts: [events] rows, of `rows` in all.
        inflation: [events] of the variance, 1 for independent rows.
        block_rows: of a block on average.
    """

    counts: Floats
    rows: float
    inflation: Floats
    block_rows: float

    @property
    def shares(self) -> Floats:
        """Return the share of each event."""
        return self.counts / max(1.0, self.rows)

    def bounds(self) -> tuple[Floats, Floats]:
        """Return bounds of the shares three standard errors away (Wilson), with rows counted by the inflation."""
        rows = max(1.0, self.rows) / self.inflation
        center = (self.shares + _SURE**2 / (2 * rows)) / (1 + _SURE**2 / rows)
        spread = np.sqrt(self.shares * (1 - self.shares) / rows + _SURE**2 / (4 * rows**2)) * _SURE
        spread = spread / (1 + _SURE**2 / rows)
        return np.maximum(center - spread, 0.0), np.minimum(center + spread, 1.0)

    def json(self) -> dict[str, Any]:
        """Return the reference as JSON."""
        inflation = [round(float(value), 4) for value in self.inflation]
        counts = self.counts.tolist()
        return {"counts": counts, "rows": self.rows, "inflation": inflation, "block_rows": round(self.block_rows, 2)}


def stored_reference(value: Mapping[str, Any]) -> Reference:
    """Return a reference from its JSON."""
    counts, inflation = (np.array(value[name], float) for name in ("counts", "inflation"))
    return Reference(counts, value["rows"], inflation, value["block_rows"])


def nothing_learned(events: int) -> Learning:
    """Return the sums of no rows."""
    level, each = np.zeros(LEVELS), np.zeros((LEVELS, events))
    return Learning(np.zeros(events), level, level, each, level, each, each, level, level)


def learn(before: Learning, counts: Floats, rows: float) -> Learning:
    """Return the sums with a further block of so many rows."""
    after = Learning(before.counts + counts, *(np.array(getattr(before, name)) for name in _ARRAYS))
    for level in range(LEVELS):
        after.batches[level] += 1
        after.squares[level] += counts**2
        after.products[level] += counts * rows
        after.rows_squares[level] += rows**2
        after.rows[level] += rows
        if not after.waits[level]:
            after.waits[level], after.pending[level], after.pending_rows[level] = 1, counts, rows
            break
        counts, rows = counts + after.pending[level], rows + after.pending_rows[level]
        after.waits[level], after.pending[level], after.pending_rows[level] = 0, 0, 0
    return after


def reference_of(learned: Learning) -> Reference:
    """Return the reference that was learned."""
    total = float(learned.rows[0])
    share = learned.counts / max(1.0, total)
    expected = share * (1 - share) * learned.rows[:, None]
    around = learned.squares - 2 * share * learned.products + share**2 * learned.rows_squares[:, None]
    usable = learned.batches >= _LEAST_BATCHES
    ratio = np.where(usable[:, None] & (expected > 0), around / np.maximum(expected, 1e-12), 1.0)
    of_all = np.where(usable, around.sum(axis=1) / np.maximum(expected.sum(axis=1), 1e-12), 1.0)
    least = 1.0 if usable[0] else _UNKNOWN_INFLATION
    inflation = np.maximum(ratio.max(axis=0), max(least, float(of_all.max())))
    return Reference(learned.counts, total, inflation, float(total / max(1.0, learned.batches[0])))


def accepted(before: Reference, counts: Floats, rows: float) -> Reference:
    """Return a reference of the present shares; how uneven they are in time stays as it was learned."""
    return replace(before, counts=counts, rows=rows)


def learning_json(learned: Learning) -> dict[str, Any]:
    """Return the sums as JSON."""
    return {"counts": learned.counts.tolist()} | {name: getattr(learned, name).tolist() for name in _ARRAYS}


def stored_learning(value: Mapping[str, Any]) -> Learning:
    """Return the sums from their JSON."""
    return Learning(*(np.array(value[name], float) for name in ("counts", *_ARRAYS)))


_ARRAYS = ("batches", "waits", "pending", "pending_rows", "squares", "products", "rows_squares", "rows")
