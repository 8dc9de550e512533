"""Calendar months in UTC. Pure."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime

from common.errors import InvalidInput

_MONTH = re.compile(r"(20[0-9]{2})-(0[1-9]|1[0-2])")


@dataclass(frozen=True, slots=True)
class Month:
    """A calendar month, from its first moment to before that of the next."""

    year: int
    number: int

    @classmethod
    def of(cls, at: datetime) -> "Month":
        """Return the month of a moment."""
        utc = at.astimezone(UTC)
        return cls(utc.year, utc.month)

    @classmethod
    def parse(cls, text: str) -> "Month":
        """Return the month such as 2026-01; raises InvalidInput."""
        found = _MONTH.fullmatch(text)
        if found is None:
            raise InvalidInput(f"month is {text[:40]!r}; expected one such as 2026-01", field="month")
        return cls(int(found[1]), int(found[2]))

    def __str__(self) -> str:
        return f"{self.year:04}-{self.number:02}"

    @property
    def start(self) -> datetime:
        """Return its first moment."""
        return datetime(self.year, self.number, 1, tzinfo=UTC)

    @property
    def end(self) -> datetime:
        """Return the first moment of the next month."""
        return self.later(1).start

    @property
    def first(self) -> date:
        """Return its first day."""
        return date(self.year, self.number, 1)

    def later(self, months: int) -> "Month":
        """Return the month so many months later, or earlier if negative."""
        total = self.year * 12 + self.number - 1 + months
        return Month(total // 12, total % 12 + 1)
