"""Kubernetes quantities. Pure."""

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation

from common.errors import InvalidInput

_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")
CPU_UNITS: Mapping[str, Decimal | int] = {"": Decimal(1), "m": Decimal("0.001")}
MEMORY_UNITS: Mapping[str, Decimal | int] = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGT", start=1)
}


def parse_memory(value: object, field: str) -> int:
    """Return a quantity of memory such as `512Mi` in bytes."""
    return int(parse_quantity(value, MEMORY_UNITS, field, "512Mi"))


def parse_quantity(value: object, units: Mapping[str, Decimal | int], field: str, example: str) -> Decimal:
    """Return a Kubernetes quantity as a number of its base unit."""
    match = _QUANTITY.fullmatch(str(value)) if isinstance(value, str | int | float) else None
    try:
        amount = Decimal(match[1]) * units[match[2]] if match else Decimal(0)
    except (KeyError, InvalidOperation):
        amount = Decimal(0)
    if isinstance(value, bool) or not 0 < amount < 2**60:
        raise InvalidInput(f"{field} is {str(value)[:60]!r}; expected a quantity such as {example}", field=field)
    return amount
