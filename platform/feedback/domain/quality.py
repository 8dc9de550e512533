"""Quality of a revision: sums of losses, their mean with an interval, delays, and slices by request parameters. Pure.

Losses lie between 0 and 1; pages and the API multiply them by the scorer's unit.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt
from statistics import NormalDist

ALPHA = 0.05
LEAST_SCORES = 30
"""Scores of each side from which on a slice is compared."""
MOST_VALUES = 20
"""Slices of one parameter: its most frequent values."""
QUANTILES = (0.5, 0.9, 0.99)
_Z = NormalDist().inv_cdf(1 - ALPHA / 2)


@dataclass(frozen=True, slots=True)
class Sums:
    """Scores, summed.

    Attributes:
        loss, squares: sums of the losses and of their squares.
        delay_s: sum of the seconds from a request to its label.
    """

    scores: int = 0
    loss: float = 0.0
    squares: float = 0.0
    delay_s: float = 0.0

    def plus(self, other: "Sums") -> "Sums":
        """Return both together."""
        return Sums(
            self.scores + other.scores,
            self.loss + other.loss,
            self.squares + other.squares,
            self.delay_s + other.delay_s,
        )

    @property
    def mean(self) -> float | None:
        """Return the mean loss; None without scores."""
        return self.loss / self.scores if self.scores else None

    @property
    def mean_delay_s(self) -> float | None:
        """Return the mean seconds from a request to its label; None without scores."""
        return self.delay_s / self.scores if self.scores else None

    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % confidence interval of the mean loss; None with fewer than two scores.

        Losses of 0 and 1 alone: Wilson's score interval. Others: the normal approximation, cut at 0 and 1.
        """
        n = self.scores
        if n < 2:
            return None
        mean = min(1.0, max(0.0, self.loss / n))
        if abs(self.squares - self.loss) <= 1e-9 * n:
            middle = (mean + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
            half = _Z * sqrt(mean * (1 - mean) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
        else:
            middle, half = mean, _Z * sqrt(max(0.0, self.squares / n - mean**2) / (n - 1))
        return max(0.0, middle - half), min(1.0, middle + half)


NOTHING = Sums()
Series = Sequence[tuple[datetime, Sums]]
"""Sums by time, oldest first."""


@dataclass(frozen=True, slots=True)
class Scored:
    """One scored answer; `at` is the time of its request."""

    revision: str
    at: datetime
    loss: float
    delay_s: float
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Slice:
    """Requests with one value of a parameter.

    Attributes:
        of: sums by revision.
        is_worse: whether the candidate is worse than the baseline here, at 5 % for all slices together.
    """

    parameter: str
    value: str
    of: Mapping[str, Sums]
    is_worse: bool = False

    @property
    def scores(self) -> int:
        """Return the scores of all revisions."""
        return sum(each.scores for each in self.of.values())


def total_of(series: Iterable[tuple[datetime, Sums]]) -> Sums:
    """Return the sums of all times."""
    total = NOTHING
    for _, sums in series:
        total = total.plus(sums)
    return total


def bucketed(series: Iterable[tuple[datetime, Sums]], length: timedelta) -> Series:
    """Return the sums by the beginning of periods of one length, oldest first and without empty ones."""
    found: dict[int, Sums] = {}
    length_s = int(length.total_seconds())
    for at, sums in series:
        begins = int(at.timestamp()) // length_s * length_s
        found[begins] = found.get(begins, NOTHING).plus(sums)
    return [(datetime.fromtimestamp(begins, tz=UTC), found[begins]) for begins in sorted(found)]


def series_of(scored: Iterable[Scored], length: timedelta) -> Mapping[str, Series]:
    """Return the sums by revision and period."""
    by_revision: dict[str, list[tuple[datetime, Sums]]] = defaultdict(list)
    for each in scored:
        by_revision[each.revision].append((each.at, Sums(1, each.loss, each.loss**2, each.delay_s)))
    return {revision: bucketed(series, length) for revision, series in by_revision.items()}


def slices_of(scored: Iterable[Scored], *, baseline: str, candidate: str) -> list[Slice]:
    """Return the slices of each parameter, the most frequent value first.

    A slice is compared where both revisions have `LEAST_SCORES`; Bonferroni's correction divides 5 % by the number of
    slices compared.

    Args:
        baseline, candidate: revisions to compare; empty for none.
    """
    sums: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
    for each in scored:
        for parameter, value in each.parameters.items():
            row = sums[parameter, value].setdefault(each.revision, [0.0, 0.0, 0.0, 0.0])
            row[0] += 1
            row[1] += each.loss
            row[2] += each.loss**2
            row[3] += each.delay_s
    found = [
        Slice(parameter, value, {revision: Sums(int(row[0]), *row[1:]) for revision, row in of.items()})
        for (parameter, value), of in sums.items()
    ]
    found.sort(key=lambda each: (each.parameter, -each.scores, each.value))
    seen: Counter[str] = Counter()
    kept = []
    for each in found:
        seen[each.parameter] += 1
        if seen[each.parameter] <= MOST_VALUES:
            kept.append(each)
    compared = [each for each in kept if _is_comparable(each, baseline, candidate)]
    if not compared:
        return kept
    z = NormalDist().inv_cdf(1 - ALPHA / len(compared))
    worse = {(each.parameter, each.value) for each in compared if _excess(each.of[candidate], each.of[baseline]) > z}
    return [Slice(each.parameter, each.value, each.of, is_worse=(each.parameter, each.value) in worse) for each in kept]


def quantiles(delays: Sequence[float], shares: Sequence[float] = QUANTILES) -> tuple[float, ...]:
    """Return the quantiles of delays, each one of the delays (nearest rank); empty without any."""
    if not delays:
        return ()
    ordered = sorted(delays)
    return tuple(ordered[min(len(ordered) - 1, int(share * len(ordered)))] for share in shares)


def _is_comparable(each: Slice, baseline: str, candidate: str) -> bool:
    return all(revision in each.of and each.of[revision].scores >= LEAST_SCORES for revision in (baseline, candidate))


def _excess(candidate: Sums, baseline: Sums) -> float:
    """Return by how many standard errors the candidate's mean loss is larger (Agresti and Caffo 2000)."""
    mean_c, variance_c = _smoothed(candidate)
    mean_b, variance_b = _smoothed(baseline)
    return (mean_c - mean_b) / sqrt(variance_c + variance_b)


def _smoothed(of: Sums) -> tuple[float, float]:
    """Return the mean with one loss of 0 and one of 1 more, and its variance."""
    n = of.scores + 2
    mean = (of.loss + 1) / n
    return mean, max(1e-12, (of.squares + 1) / n - mean**2) / n
