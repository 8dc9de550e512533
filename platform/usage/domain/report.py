"""Usage by what a reader groups it by, with its cost. Pure.

Cost is the time that replicas worked on requests at the hourly price of a replica of their kind: a replica that
works on several requests at a time counts for each, and idle time for none. So it divides costs among callers; what a
cluster costs is another figure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from clusters.domain.pricing import Prices
from common.errors import InvalidInput

GROUPS = ("team", "key", "service", "revision", "day", "hour")
DEFAULT_GROUPS = ("team", "service", "key")
COUNTS = ("requests", "errors", "rows", "bytes_in", "bytes_out", "model_us")
_US = 1_000_000


@dataclass(slots=True)
class Line:
    """Usage of one group.

    Attributes:
        group: its value of each thing that is grouped by, in that order.
        cost: in the currency of the prices; None where a kind of replica has no price.
    """

    group: tuple[str, ...]
    requests: int = 0
    errors: int = 0
    rows: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    model_us: int = 0
    cost: float | None = field(default=0.0)

    @property
    def model_seconds(self) -> float:
        """Return the time that replicas worked on the requests."""
        return self.model_us / _US


def parse_groups(text: str) -> tuple[str, ...]:
    """Return what to group by, from names separated by commas; raises InvalidInput."""
    names = tuple(dict.fromkeys(filter(None, text.split(",")))) or DEFAULT_GROUPS
    if odd := next((each for each in names if each not in GROUPS), None):
        raise InvalidInput(f"by has {odd[:40]!r}; expected some of {', '.join(GROUPS)}", field="by")
    return names


def report(
    rows: Iterable[Mapping[str, Any]],
    by: tuple[str, ...],
    prices: Prices,
) -> list[Line]:
    """Return the usage by group, in the order of the groups.

    Args:
        rows: sums by at least the names in `by`, and by `accelerator`, the GPU or slice of a replica.
    """
    lines: dict[tuple[str, ...], Line] = {}
    for row in rows:
        group = tuple(_value(row, name) for name in by)
        line = lines.setdefault(group, Line(group))
        for name in COUNTS:
            setattr(line, name, getattr(line, name) + row[name])
        if line.cost is not None and row["model_us"]:
            price = prices.of(row["accelerator"])
            line.cost = None if price is None else line.cost + row["model_us"] / _US / 3600 * price
    return [lines[group] for group in sorted(lines)]


def total(lines: Iterable[Line]) -> Line:
    """Return the sum of lines; its cost is None where that of one is."""
    found = Line(())
    for each in lines:
        for name in COUNTS:
            setattr(found, name, getattr(found, name) + getattr(each, name))
        found.cost = None if found.cost is None or each.cost is None else found.cost + each.cost
    return found


def _value(row: Mapping[str, Any], name: str) -> str:
    if name == "service":
        return f"{row['namespace']}/{row['service']}"
    if name in ("day", "hour"):
        return f"{row[name]:%Y-%m-%d}" if name == "day" else f"{row[name]:%Y-%m-%dT%H:00Z}"
    return str(row[name])
