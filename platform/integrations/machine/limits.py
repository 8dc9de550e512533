"""Resource limits of a machine: how close each is, with a sentence on what breaks and what to do. Pure.

fine ──80 %──> close ──95 %──> at limit        unknown: it cannot be read here
  ^──below 70 %──┘ an event is due again only then, so that a figure that wavers causes one
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

CLOSE_PERCENT, AT_LIMIT_PERCENT, CALM_PERCENT = 80, 95, 70
OPEN_FILES, PROCESSES, MEMORY = "open files", "processes", "memory"
INSTANCES, WATCHES = "inotify instances", "inotify watches"
NAMES = (OPEN_FILES, PROCESSES, INSTANCES, WATCHES, MEMORY)
_MIB, _GIB = 1 << 20, 1 << 30
_BEGIN = {
    OPEN_FILES: 30,
    PROCESSES: 34,
    MEMORY: 367 * _MIB,
}
"""Open files that the platform needs to start, in the process with most: measured, see docs/reference/limits.md."""
_EACH_SERVICE = {OPEN_FILES: 2, PROCESSES: 4, MEMORY: 52 * _MIB}


class Level(StrEnum):
    """How close a limit is."""

    FINE = "fine"
    CLOSE = "close"
    AT_LIMIT = "at limit"
    UNKNOWN = "unknown"


_RANK = {Level.UNKNOWN: 0, Level.FINE: 0, Level.CLOSE: 1, Level.AT_LIMIT: 2}


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit, and how much of it is used.

    Attributes:
        name: one of `NAMES`.
        used, most: bytes for memory, else a number; None where they cannot be read.
        whose: what has the limit, such as `gateway` or `this machine`.
        breaks: what happens at the limit; with `remedy` a part of a sentence.
        needed: what the platform takes of it to start, where it has not started yet.
    """

    name: str
    used: int | None = None
    most: int | None = None
    whose: str = ""
    breaks: str = ""
    remedy: str = ""
    needed: int = 0

    @property
    def percent(self) -> float | None:
        """How much of the limit is used, or would be; None where that is unknown."""
        if self.used is None or self.most is None:
            return None
        return 100.0 * (self.used + self.needed) / self.most if self.most else 100.0

    @property
    def level(self) -> Level:
        """How close it is."""
        if (percent := self.percent) is None:
            return Level.UNKNOWN
        if percent < CLOSE_PERCENT:
            return Level.FINE
        return Level.CLOSE if percent < AT_LIMIT_PERCENT else Level.AT_LIMIT

    @property
    def sentence(self) -> str:
        """What is used of how much, what breaks and what to do; empty where it is fine or unknown."""
        if self.level not in (Level.CLOSE, Level.AT_LIMIT):
            return ""
        what = "of memory" if self.name == MEMORY else self.name
        start = f"the platform takes {self.amount(self.needed)} {what} to start, and " if self.needed else ""
        uses = (
            f"{self.whose} uses {self.amount(self.used)} of {self.amount(self.most)}{'' if self.needed else f' {what}'}"
        )
        return f"{start}{uses}; at the limit {self.breaks}; {self.remedy}"

    def amount(self, number: int | None) -> str:
        """Format a number in the limit's unit for people; empty for None."""
        if number is None:
            return ""
        if self.name != MEMORY:
            return f"{number:,}"
        return f"{number / _GIB:.1f} GiB" if number >= _GIB else f"{number / _MIB:.0f} MiB"


def tightest(limits: Iterable[Limit]) -> tuple[Limit, ...]:
    """Return the closest limit of each name; an unknown one has no figures."""
    found = {name: Limit(name) for name in NAMES}
    for limit in limits:
        if limit.percent is not None and limit.percent >= (found[limit.name].percent or 0):
            found[limit.name] = limit
    return tuple(found.values())


def before_start(limits: Iterable[Limit], services: int) -> tuple[Limit, ...]:
    """Return limits with what the platform needs to start with so many services."""
    return tuple(
        replace(limit, needed=_BEGIN.get(limit.name, 0) + services * _EACH_SERVICE.get(limit.name, 0))
        for limit in limits
    )


def noted(before: str, limit: Limit) -> Level:
    """Return the level of the last event written, after this reading; `before` is that after the previous one."""
    last = Level(before) if before in set(Level) else Level.FINE
    rises = _RANK[limit.level] > _RANK[last]
    is_calm = limit.percent is not None and limit.percent < CALM_PERCENT
    return limit.level if rises or is_calm else last


def rose(before: str, after: Level) -> bool:
    """Return whether `after` is worse than `before`: an event is due."""
    return _RANK[after] > _RANK.get(Level(before) if before in set(Level) else Level.FINE, 0)
