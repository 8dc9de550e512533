"""Choices of a model column from an enumeration."""

from collections.abc import Iterable


def choices(values: Iterable[object]) -> list[tuple[str, str]]:
    """Return each value as its own label."""
    return [(str(value), str(value)) for value in values]
