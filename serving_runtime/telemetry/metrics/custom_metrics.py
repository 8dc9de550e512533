"""Custom metrics that models create (Triton: custom metrics of the Python backend), shown beside the server's.

A series is one number, or one histogram, per family and labels; values of several processes of a model, or of several
models, under the same name and labels are summed. It lives until its last owner drops it or is unloaded.
"""

import re
import threading
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from serving_runtime.telemetry.metrics.families import Buckets, Family, Value

KINDS = ("counter", "gauge", "histogram")
_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SERVERS = ("nv_", "fairlead_", "process_")


def problems_with(name: str, kind: str, labels: Mapping[str, str], edges: Sequence[float]) -> Iterator[str]:
    """Yield the errors of a metric, in words."""
    if not _NAME.fullmatch(name):
        yield f"'{name}' cannot be a metric's name: letters, digits, underscores and colons, no digit first"
    if name.startswith(_SERVERS):
        yield f"metric '{name}': names that begin with {', '.join(_SERVERS)} are the server's own"
    if kind not in KINDS:
        yield f"metric '{name}' is of kind {kind!r}; it can be {', '.join(KINDS)}"
    for label, value in labels.items():
        if not _LABEL.fullmatch(str(label)) or label == "le" or not isinstance(value, str):
            yield f"metric '{name}': label {label!r} with value {value!r} cannot be one; both are texts"
    if kind == "histogram" and (not edges or list(edges) != sorted(set(edges))):
        yield f"metric '{name}' is a histogram, whose buckets must ascend; found {list(edges)}"
    if kind != "histogram" and edges:
        yield f"metric '{name}' is a {kind}, which has no buckets"


@dataclass(slots=True)
class _Series:
    """Attributes: owners: how often each created it."""

    edges: tuple[float, ...] = ()
    value: float = 0.0
    counts: list[int] = field(default_factory=list)
    owners: dict[Hashable, int] = field(default_factory=dict)

    def shown(self) -> float | Buckets:
        return Buckets(self.edges, tuple(self.counts), self.value) if self.edges else self.value


@dataclass(slots=True)
class _Family:
    kind: str
    text: str
    series: dict[tuple[tuple[str, str], ...], _Series] = field(default_factory=dict)


class OwnMetrics:
    """The metrics of all models of a process; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._families: dict[str, _Family] = {}

    def make(  # noqa: PLR0917
        self, owner: Hashable, name: str, kind: str, text: str, labels: Mapping[str, str], edges: Sequence[float] = ()
    ) -> str:
        """Create a series, or count another owner; returns why that failed, empty on success."""
        for problem in problems_with(name, kind, labels, edges):
            return problem
        with self._lock:
            family = self._families.setdefault(name, _Family(kind, " ".join(text.split())))
            if family.kind != kind:
                return f"metric '{name}' is a {family.kind} already, and cannot be a {kind} too"
            series = family.series.setdefault(_key(labels), _Series(tuple(edges), counts=[0] * (len(edges) + 1)))
            if series.edges != tuple(edges):
                return f"metric '{name}' has the buckets {list(series.edges)} already"
            series.owners[owner] = series.owners.get(owner, 0) + 1
        return ""

    def change(self, name: str, labels: Mapping[str, str], action: str, value: float) -> None:
        """Increment, set or observe; does nothing where the series is gone."""
        with self._lock:
            series = self._found(name, labels)
            if series is None:
                return
            if action == "observe":
                series.counts[bisect_left(series.edges, value)] += 1
            series.value = value if action == "set" else series.value + value

    def value(self, name: str, labels: Mapping[str, str]) -> float:
        """Return the number, of a histogram the sum."""
        with self._lock:
            series = self._found(name, labels)
            return series.value if series is not None else 0.0

    def drop(self, owner: Hashable, name: str, labels: Mapping[str, str]) -> None:
        """Drop one of the owner's references."""
        with self._lock:
            series = self._found(name, labels)
            if series is not None and owner in series.owners:
                series.owners[owner] -= 1
                if not series.owners[owner]:
                    del series.owners[owner]
                self._tidy()

    def close(self, owner: Hashable) -> None:
        """Drop all references of this owner."""
        with self._lock:
            for family in self._families.values():
                for series in family.series.values():
                    series.owners.pop(owner, None)
            self._tidy()

    def families(self) -> Iterator[Family]:
        """Yield the families to show."""
        with self._lock:
            for name, family in sorted(self._families.items()):
                samples: list[tuple[Mapping[str, str], Value]] = [
                    (dict(labels), series.shown()) for labels, series in family.series.items()
                ]
                yield Family(name, family.kind, family.text, samples)

    def _found(self, name: str, labels: Mapping[str, str]) -> _Series | None:
        family = self._families.get(name)
        return family.series.get(_key(labels)) if family is not None else None

    def _tidy(self) -> None:
        for name, family in list(self._families.items()):
            family.series = {labels: series for labels, series in family.series.items() if series.owners}
            if not family.series:
                del self._families[name]


def _key(labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


OWN = OwnMetrics()
"""Those of this process, which has one metrics page."""
