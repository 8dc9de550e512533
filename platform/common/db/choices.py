"""Enumerations as the choices of a column."""

from collections.abc import Iterable


def choices(values: Iterable[object]) -> list[tuple[str, str]]:
    """Return each value as its own label."""
    return [(str(value), str(value)) for value in values]
