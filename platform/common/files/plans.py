"""Plans of changes: what applying a file would do, made once, without a write; the change carries out the same plan."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

Plan = TypeVar("Plan")
Result = TypeVar("Result")


class Outcome(StrEnum):
    """The outcome of applying a file."""

    UNCHANGED = "unchanged"
    CREATED = "created"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Planned(Generic[Plan, Result]):
    """A plan of a change, and the change itself.

    Attributes:
        carry_out: does what was planned, once; where the rows were changed since, it makes the change anyway, and
            raises what that raises.
    """

    plan: Plan
    carry_out: Callable[[], Result]
