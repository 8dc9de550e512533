"""Labelled answers of both sides, summed up: what a gate on quality asks for, and what it gets. Pure.

The room of labels returns them (`deployments.hooks`); a loss is 0 for a right answer up to 1 for as wrong as can be.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

WHOLE = ""
"""Name of all labelled answers together, beside the values of a parameter."""


@dataclass(frozen=True, slots=True)
class Losses:
    """Labelled answers of one side: how many, the sum of their losses, and of the squares."""

    labels: int = 0
    loss: float = 0.0
    squares: float = 0.0

    @property
    def mean(self) -> float:
        """Return the mean loss, 0 without labels."""
        return self.loss / self.labels if self.labels else 0.0

    @property
    def variance(self) -> float:
        """Return the variance of a loss, 0 without labels."""
        return max(0.0, self.squares / self.labels - self.mean**2) if self.labels else 0.0

    @property
    def is_graded(self) -> bool:
        """Return whether some loss is neither 0 nor 1."""
        return self.loss - self.squares > 1e-9

    def plus(self, other: "Losses") -> "Losses":
        """Return the sum of both."""
        return Losses(self.labels + other.labels, self.loss + other.loss, self.squares + other.squares)


@dataclass(frozen=True, slots=True)
class Sides:
    """The labelled answers of both sides in the same time."""

    canary: Losses = Losses()
    stable: Losses = Losses()

    def plus(self, other: "Sides") -> "Sides":
        """Return the sum of both."""
        return Sides(self.canary.plus(other.canary), self.stable.plus(other.stable))


@dataclass(frozen=True, slots=True)
class Habits:
    """What is known of a service's labels before a canary.

    Attributes:
        unit, scale: a loss times `scale` is the number that people read.
        horizon_s: nine of ten of stable's labels came within that time after their request.
        stable: its newest labelled answers.
        per_second: labelled answers of stable a second; None where unknown.
        values: the most frequent values of the parameter that was named, at most ten.
        problem: what is missing, and what to do; the rest means nothing then.
    """

    unit: str = ""
    scale: float = 1.0
    horizon_s: float = 60.0
    stable: Losses = Losses()
    per_second: float | None = None
    values: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_share(self) -> bool:
        """Return whether people read the mean loss as a percentage of answers."""
        return self.unit.startswith("percent")

    @property
    def is_graded(self) -> bool:
        """Return whether losses other than 0 and 1 are to be expected."""
        return self.stable.is_graded or not self.is_share


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for the labelled answers to requests of a time.

    Attributes:
        began, ended: of the requests, in Unix seconds; the end is outside.
        horizon_s: labels that came later than so long after their request are left out, on both sides.
        is_paired: only requests that both sides answered count.
        parameter, values: the losses are also returned for each of these values of a request parameter.
        least_canary, least_stable: with fewer labels of a side nothing is summed up.
    """

    service_id: int
    scorer: str
    canary: str
    stable: str
    began: float
    ended: float
    horizon_s: float
    is_paired: bool = False
    parameter: str = ""
    values: tuple[str, ...] = ()
    least_canary: int = 4
    least_stable: int = 20


@dataclass(frozen=True, slots=True)
class Answered:
    """The answer.

    Attributes:
        canary, stable: labels that are there, counted up to the least of the question.
        sums: by value of the parameter, `WHOLE` for all; empty with fewer labels than the least.
        ended: until when the sums reach: the end of the question, or earlier where there is too much for one look.
        unit, scale: of the scorer now.
        problem: what is missing, and what to do.
    """

    canary: int = 0
    stable: int = 0
    sums: Mapping[str, Sides] = field(default_factory=dict)
    ended: float = 0.0
    unit: str = ""
    scale: float = 1.0
    problem: str = ""
