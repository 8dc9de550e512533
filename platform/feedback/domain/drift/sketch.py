"""Sketch of a feature: a histogram over bins that its first values fix. Pure; its size is bounded.

Of numbers the bins are between the deciles of the first values, and what is outside of their range and what is no
finite number have bins of their own, the outliers. Of classes they are the most frequent ones and "other".

Detectors watch events: of classes the bins; of numbers also "below this edge", which a moved mean shows in sooner.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from feedback.domain.drift.features import Floats, Kind, Values

FIRST_VALUES = 500
MOST_CLASSES = 19
MOST_DISTINCT = 50
"""Of more distinct classes among the first values none is a shape: they are names, and are not kept."""
_RANGES = 10


@dataclass(frozen=True, slots=True)
class Bins:
    """Bins of a feature.

    Attributes:
        edges: of numbers, rising; a bin begins with its edge.
        classes: of classes, the most frequent one first.
    """

    kind: Kind
    edges: tuple[float, ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Return how many bins there are: at most 13 of numbers, 20 of classes."""
        return len(self.edges) + 2 if self.kind is Kind.NUMBER else len(self.classes) + 1

    def counts(self, values: Values) -> Floats:
        """Return how many of the values are in each bin."""
        if self.kind is Kind.CLASS:
            place = {name: number for number, name in enumerate(self.classes)}
            places = [place.get(str(value), len(place)) for value in values]
        else:
            numbers = np.asarray(values, float)
            found = np.searchsorted(np.array(self.edges), numbers, side="right")
            places = np.where(np.isfinite(numbers), found, len(self.edges) + 1)  # type: ignore[assignment]
        return np.bincount(places, minlength=self.size).astype(float)

    def events(self, counts: Floats) -> Floats:
        """Return [..., events] how many values belong to each event, from [..., bins]."""
        if self.kind is Kind.CLASS:
            return counts
        return np.concatenate([counts, np.cumsum(counts, axis=-1)[..., 1 : len(self.edges) - 1]], axis=-1)

    def outliers(self, counts: Floats) -> float:
        """Return the share outside of the range of the first values; of classes that of the others."""
        total = float(counts.sum())
        outside = counts[0] + counts[-2:].sum() if self.kind is Kind.NUMBER else counts[-1]
        return float(outside) / total if total else 0.0

    def words(self, number: int) -> str:
        """Return an event in words, to follow "the share of"."""
        if self.kind is Kind.CLASS:
            return f"class {self.classes[number]}" if number < len(self.classes) else "other classes"
        if number == len(self.edges) + 1:
            return "values that are no finite number"
        if number == 0 or number >= self.size:
            return f"values below {_shown(self.edges[max(0, number - self.size + 1)])}"
        if number == len(self.edges):
            return f"values above {_shown(self.edges[-1])}"
        first, last = self.edges[number - 1 : number + 1]
        if last == _after(first):
            return f"values of {_shown(first)}"
        return f"values from {_shown(first)} to {_shown(last)}"

    def json(self) -> dict[str, Any]:
        """Return the bins as JSON."""
        return {"kind": str(self.kind), "edges": list(self.edges), "classes": list(self.classes)}


def stored_bins(value: Mapping[str, Any]) -> Bins:
    """Return the bins from their JSON."""
    return Bins(Kind(value["kind"]), tuple(value["edges"]), tuple(value["classes"]))


def bins_of(kind: Kind, values: Sequence[float] | Sequence[str]) -> Bins | None:
    """Return bins for values like these; None where they have no shape: no finite number, or too many classes."""
    if kind is Kind.CLASS:
        counted = Counter(str(value) for value in values)
        if not counted or len(counted) > MOST_DISTINCT:
            return None
        ordered = sorted(counted, key=lambda name: (-counted[name], name))
        return Bins(kind, classes=tuple(ordered[:MOST_CLASSES]))
    numbers = np.array([value for value in values if np.isfinite(float(value))], float)
    if not numbers.size:
        return None
    edges = np.unique(np.quantile(numbers, np.linspace(0, 1, _RANGES + 1), method="lower"))
    edges = np.unique(np.append(edges, _after(float(numbers.max()))))
    if len(edges) > 2:
        edges = np.delete(edges, -2)  # the largest value itself belongs to the last range
    return Bins(kind, edges=tuple(float(edge) for edge in edges if np.isfinite(edge)))


def _after(value: float) -> float:
    return math.nextafter(value, math.inf)


def _shown(value: float) -> str:
    return f"{value:.4g}"
