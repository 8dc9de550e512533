"""Time blocks, the unit of the evidence: concurrent requests are not independent of each other. Pure.

A block continues from tick to tick until it is old enough and has enough requests on both sides. That depends on the
clock and on the number of requests, never on their outcome; the gateway draws at random which requests the canary gets.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from deployments.domain.analysis.evidence import batch_profile as batches
from deployments.domain.analysis.evidence.batch_profile import Batches
from deployments.domain.analysis.evidence.totals import Counts
from integrations.clusters.base import BatchTime

LEAST_S = 1.5
"""A little less than the time between two ticks, so that each may close a block."""

PATIENCE_S = 10.0
"""After this time a block closes without enough requests of stable, which may get few at a high weight."""

LEAST_CANARY, LEAST_STABLE = 4, 20


@dataclass(frozen=True, slots=True)
class Tally:
    """Requests of one side.

    Attributes:
        timed: whose latency is known; `slow` of them were slower than the edge.
        answered: whose latency is known; `over` of them took longer than the policy's own limit.
        batches: what the replicas ran.
    """

    requests: int = 0
    client_errors: int = 0
    server_errors: int = 0
    timed: int = 0
    slow: int = 0
    answered: int = 0
    over: int = 0
    batches: Batches = ()

    def minus(self, other: "Tally") -> "Tally":
        """Return the requests after `other`."""
        return Tally(
            self.requests - other.requests,
            self.client_errors - other.client_errors,
            self.server_errors - other.server_errors,
            self.timed - other.timed,
            self.slow - other.slow,
            self.answered - other.answered,
            self.over - other.over,
            batches.minus(self.batches, other.batches),
        )


@dataclass(frozen=True, slots=True)
class Block:
    """The requests of both sides in the same time."""

    canary: Tally
    stable: Tally
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Mark:
    """The start of the open block: the time (Unix seconds) and the step's sums then."""

    at: float
    canary: Tally = Tally()
    stable: Tally = Tally()


def tally(counts: Counts, edge_us: float | None, limit_us: float | None = None) -> Tally:
    """Return the sums of a step that evidence needs; without an edge no request is slow or fast.

    Args:
        limit_us: the policy's own limit of latency; it counts as the next edge above it.
    """
    timed = 0 if edge_us is None else counts.latency.total
    slow = 0 if edge_us is None else counts.latency.slower_than(edge_us)
    over = 0 if limit_us is None else counts.latency.slower_than(limit_us)
    answered = 0 if limit_us is None else counts.latency.total
    return Tally(
        counts.requests, counts.client_errors, counts.server_errors, timed, slow, answered, over, counts.batches
    )


def close(mark: Mark, canary: Tally, stable: Tally, at: float) -> Block | None:
    """Return the block from the mark until now; None while it must go on."""
    block = Block(canary.minus(mark.canary), stable.minus(mark.stable), at - mark.at)
    has_stable = block.stable.requests >= LEAST_STABLE or block.seconds >= PATIENCE_S
    return block if block.seconds >= LEAST_S and block.canary.requests >= LEAST_CANARY and has_stable else None


def mark_json(mark: Mark) -> dict[str, Any]:
    """Return the mark as JSON."""
    return asdict(mark)


def stored_mark(value: Mapping[str, Any]) -> Mark:
    """Return the mark from the JSON of `mark_json`."""
    return Mark(value["at"], _stored_tally(value["canary"]), _stored_tally(value["stable"]))


def _stored_tally(fields: Mapping[str, Any]) -> Tally:
    return Tally(**{**fields, "batches": tuple(BatchTime(*each) for each in fields.get("batches", ()))})
