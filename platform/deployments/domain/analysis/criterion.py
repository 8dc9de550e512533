"""Analysis criterion: one measurement of a gate, and the interface for new kinds. Pure.

A kind is a class in a module of its own beside `errors` and `latency`, with its limits as fields; `gate.questions_of`
makes those of a step's gate. To add one:

- `metric`: its name, unique within the gate; the evidence goes on under it from step to step.
- `stakes(block)`: the evidence of a closed block, as factors for `eprocess.bet`. Each factor must have a mean of at
  most 1 while the canary is within its limit; `eprocess.limit_factors` (a share against a limit) and
  `eprocess.increase_factors` (a share against stable's) have that, for any value scaled to 0..1. None where the block
  has no evidence. The data it needs of a block goes into `blocks.Tally`.
- `judge(window, is_clear)`: the Measurement; `is_clear` is whether the evidence is clear.
- `counted(window)`: the share of requests whose bounds are drawn; None without one.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

import numpy as np

from deployments.domain.analysis.evidence.blocks import Block
from deployments.domain.analysis.evidence.eprocess import Floats, Shares
from deployments.domain.analysis.evidence.external_samples import Looks
from deployments.domain.analysis.evidence.label_watch import Watch
from deployments.domain.analysis.evidence.totals import Counts
from deployments.domain.analysis.verdict import Measurement, Verdict
from deployments.domain.comparison.report import Compared

PERCENT = "percent"
POINTS = "percentage points"


@dataclass(frozen=True, slots=True)
class Window:
    """The observations of one step.

    Attributes:
        edge_us: slower requests are slow; fixed from stable, None until stable had enough requests.
        waited: since the canary's first request in the step; None without one.
        stable_answered: requests to stable's replicas since they started, from which the edge is fixed.
        subject: the name of the canary in sentences; it may be a shadow.
        compared: the comparison of its answers; None where they are not compared.
        looks: the samples of the policy's own metrics, by name.
        labels: the labelled answers of the gate's scorer; None where the gate has no `quality`.
        at: the time of the look; None where nothing depends on it.
        share_percent: of the clients' requests, that the canary gets or copies; 0 where unknown.
    """

    canary: Counts
    stable: Counts
    edge_us: float | None
    waited: timedelta | None
    stable_answered: int = 0
    subject: str = "canary"
    compared: Compared | None = None
    looks: Mapping[str, Looks] = field(default_factory=dict)
    labels: Watch | None = None
    at: datetime | None = None
    share_percent: float = 0.0


@dataclass(frozen=True, slots=True)
class Stakes:
    """The evidence of one block: `factors` [bettors] and `value`, the arguments of `eprocess.bet`."""

    factors: Floats
    value: float

    @classmethod
    def of(cls, factors_and_value: tuple[Floats, Floats]) -> "Stakes":
        """Return the stakes of one block."""
        factors, value = factors_and_value
        return cls(factors, float(value))


class Question(Protocol):
    """One measurement of a gate."""

    @property
    def metric(self) -> str:
        """Return its name."""

    def stakes(self, block: Block) -> Stakes | None:
        """Return the stakes of a closed block; None where it has no evidence."""

    def judge(self, window: Window, *, is_clear: bool) -> Measurement:
        """Return the measurement over the step; Failed where the evidence is clear."""

    def counted(self, window: Window) -> "Share | None":
        """Return the share of the canary's requests that it measures; None where it measures something else."""


@dataclass(frozen=True, slots=True)
class Share:
    """`bad` out of `total` requests."""

    bad: int
    total: int

    @property
    def fraction(self) -> float:
        """Return the share seen, 0 without requests."""
        return self.bad / self.total if self.total else 0.0

    @property
    def percent(self) -> float:
        """Return the share seen in percent."""
        return 100 * self.fraction

    @property
    def shares(self) -> Shares:
        """Return it in the form of which stakes are computed."""
        return Shares(np.array(self.fraction), np.array(float(self.total)))

    @property
    def shown(self) -> float | None:
        """Return the percentage for a measurement, None without requests."""
        return round(self.percent, 4) if self.total else None

    def __str__(self) -> str:
        return f"{self.bad} of {self.total}"


def decided(share: Share, allowed_percent: float, min_requests: int, *, is_clear: bool) -> tuple[Verdict, str, int]:
    """Return the verdict on a share, the end of its sentence, and how many more requests a verdict needs at least."""
    if is_clear:
        is_seen = share.percent > allowed_percent
        return Verdict.FAILED, "" if is_seen else "; with the steps before, the evidence against it is clear", 0
    more = more_requests(share, allowed_percent, min_requests)
    if more == 0:
        return Verdict.SUCCESSFUL, "", 0
    count = "1 more request" if more == 1 else f"{more} more requests"
    if share.total < min_requests:
        return Verdict.RUNNING, f"; a verdict needs {min_requests} requests, at least {count}", more
    return Verdict.RUNNING, f"; that is not clear yet, at least {count} are needed", more


def more_requests(share: Share, allowed_percent: float, min_requests: int) -> int:
    """Return how many more requests, all of them good, would suffice to pass."""
    missing = max(0, min_requests - share.total)
    if share.percent <= allowed_percent and not missing:
        return 0
    if allowed_percent <= 0:
        return max(1, missing)
    diluted = math.ceil(100 * share.bad / allowed_percent - 1e-9) - share.total
    return max(missing, diluted)
