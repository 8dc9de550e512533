"""Outcomes of applying a file."""

from enum import StrEnum


class Outcome(StrEnum):
    """The outcome of applying a file."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"
