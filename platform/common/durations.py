"""Duration parser and formatter: `10s`, `1m30s`, `2h`, `250ms`, `1.5h`. Pure.

The syntax is Kubernetes' (Go's `time.ParseDuration`) without signs and nanoseconds, which `timedelta` does not have.
"""

import re
from datetime import timedelta
from fractions import Fraction

from common.errors import InvalidInput

_UNITS_US = {"h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1, "µs": 1}
_PART = re.compile(r"([0-9]+(?:\.[0-9]+)?)(h|ms|us|µs|m|s)")
_WHOLE = re.compile(rf"(?:{_PART.pattern})+")
_MAX_CHARACTERS = 40


def parse(text: str, *, field: str | None = None) -> timedelta:
    """Return the parsed duration; `0` needs no unit.

    Raises:
        InvalidInput: the text is not a duration, or finer than a microsecond, or longer than about 2.7 million years.
    """
    if text == "0":
        return timedelta(0)
    if len(text) > _MAX_CHARACTERS or not _WHOLE.fullmatch(text):
        raise InvalidInput(f"{text[:_MAX_CHARACTERS]!r} is no duration; write it like 10s, 1m30s or 2h", field=field)
    total = sum((Fraction(number) * _UNITS_US[unit] for number, unit in _PART.findall(text)), Fraction(0))
    if total.denominator != 1:
        raise InvalidInput(f"{text!r} is finer than a microsecond; write it like 10s, 1m30s or 250ms", field=field)
    try:
        return timedelta(microseconds=int(total))
    except OverflowError as error:
        raise InvalidInput(f"{text!r} is too long a duration; write it like 10s, 1m30s or 2h", field=field) from error


def render(duration: timedelta) -> str:
    """Return the shortest form with whole numbers that `parse` reads back exactly; `0s` for zero.

    Raises:
        ValueError: the duration is negative.
    """
    left = duration // timedelta(microseconds=1)
    if left < 0:
        raise ValueError(f"a duration cannot be negative: {duration!r}")
    parts: list[str] = []
    for unit in ("h", "m", "s", "ms", "us"):
        count, left = divmod(left, _UNITS_US[unit])
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"
