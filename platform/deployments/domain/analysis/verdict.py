"""Analysis verdicts, and measurements with their evidence. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """The verdict on a canary at one step.

    Running: evidence still comes in, hold. Failed: the evidence is clear. Inconclusive: the step's deadline passed
    undecided.
    """

    RUNNING = "Running"
    SUCCESSFUL = "Successful"
    FAILED = "Failed"
    INCONCLUSIVE = "Inconclusive"


@dataclass(frozen=True, slots=True)
class Measurement:
    """One metric of the gate.

    Attributes:
        unit: what `canary`, `stable` and `limit` count; those are None without a number yet.
        message: one sentence with the numbers and the sample sizes.
        more_requests: how many more requests of the canary a verdict of Successful needs at least; None where it does
            not depend on requests.
        evidence_percent: progress of the evidence that the limit is broken; 100 is clear, and fails the canary.
        low, high: anytime-valid confidence bounds of the canary's true value (`comparison.interval`); None where
            unknown.
    """

    metric: str
    unit: str
    canary: float | None
    stable: float | None
    limit: float | None
    verdict: Verdict
    message: str
    more_requests: int | None = None
    evidence_percent: float = 0.0
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of the analysis of one step.

    Attributes:
        canary_requests, stable_requests: what the gateway sent to each in the step.
        measurements: empty for a step without a gate.
    """

    verdict: Verdict
    message: str
    canary_requests: int = 0
    stable_requests: int = 0
    measurements: tuple[Measurement, ...] = ()
