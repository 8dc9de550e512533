"""Drift: changes by people or other programs since the last apply. Standard library only."""

from dataclasses import dataclass
from enum import StrEnum


class DriftPolicy(StrEnum):
    """How a change made by hand is resolved: it is put back, or left and shown while it lasts."""

    HEAL = "heal"
    KEEP = "keep"


@dataclass(frozen=True, slots=True)
class Drift:
    """One difference between what was applied and what was found instead.

    Attributes:
        object: kind and name, such as `Deployment/digits-00001`.
        path: the field, such as `spec.template.spec.containers[name=runtime].image`; empty where the object is gone.
        wanted, found: the values as short JSON; empty where absent.
        manager: owner of the field now, by the API server's name; empty where that is not recorded.
        at: Unix seconds at which that manager wrote last; None where that is not recorded.
        healed: it was put back; else it is left as it was found.
    """

    object: str
    path: str
    wanted: str
    found: str
    manager: str = ""
    at: float | None = None
    healed: bool = False
