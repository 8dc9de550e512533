"""Logarithmic histogram of differences. Pure.

Ten buckets per decade from 1e-12 to 1e12, so a quantile is known to a quarter of its size, for any number of values;
zeros and values without a size (`difference.MOST`) are counted apart. Distributions can be merged.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from deployments.domain.comparison.difference import MOST

_PER_DECADE = 10
_LEAST, _MOST = -12 * _PER_DECADE, 12 * _PER_DECADE


@dataclass(frozen=True, slots=True)
class Distribution:
    """Values >= 0.

    Attributes:
        buckets: number -> count; number n holds values from 10^(n/10) to 10^((n+1)/10), the first and last all beyond.
        largest: of the values that have a size.
    """

    zeros: int = 0
    sizeless: int = 0
    largest: float = 0.0
    buckets: Mapping[int, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Return the number of values."""
        return self.zeros + self.sizeless + sum(self.buckets.values())

    def plus(self, values: Iterable[float]) -> "Distribution":
        """Return the distribution with more values."""
        zeros, sizeless, largest, buckets = 0, 0, 0.0, Counter[int]()
        for value in values:
            if value <= 0:
                zeros += 1
            elif value >= MOST:
                sizeless += 1
            else:
                largest = max(largest, value)
                buckets[min(max(math.floor(math.log10(value) * _PER_DECADE), _LEAST), _MOST)] += 1
        return self.merged(Distribution(zeros, sizeless, largest, buckets))

    def merged(self, other: "Distribution") -> "Distribution":
        """Return the distribution of the values of both."""
        return Distribution(
            self.zeros + other.zeros,
            self.sizeless + other.sizeless,
            max(self.largest, other.largest),
            dict(sorted((Counter(self.buckets) + Counter(other.buckets)).items())),
        )

    def quantile(self, share: float) -> float | None:
        """Return a value that `share` (0..1) of the values do not exceed, at most a quarter too high.

        None without values, and where the quantile has no size.
        """
        if not self.total:
            return None
        below = self.zeros
        if below >= share * self.total:
            return 0.0
        for number, count in sorted(self.buckets.items()):
            below += count
            if below >= share * self.total:
                return min(10 ** ((number + 1) / _PER_DECADE), self.largest)
        return None

    def decades(self) -> list[tuple[int, int]]:
        """Return (n, how many values from 10^n up to 10^(n+1)), from the least to the largest decade with any."""
        counts = Counter[int]()
        for number, count in self.buckets.items():
            counts[number // _PER_DECADE] += count
        return [(decade, counts[decade]) for decade in range(min(counts), max(counts) + 1)] if counts else []

    def as_json(self) -> dict[str, Any]:
        """Return the distribution for `stored`."""
        buckets = {str(number): count for number, count in self.buckets.items()}
        return {"zeros": self.zeros, "sizeless": self.sizeless, "largest": self.largest, "buckets": buckets}

    @classmethod
    def stored(cls, value: Mapping[str, Any]) -> "Distribution":
        """Return the distribution from the value of `as_json`."""
        buckets = {int(number): count for number, count in value["buckets"].items()}
        return cls(value["zeros"], value["sizeless"], value["largest"], buckets)
