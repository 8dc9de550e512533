"""Conditions of an object's status, as Kubernetes' API conventions have them. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple


class Condition(NamedTuple):
    """What is so of an object: `status` is True, False or Unknown, `reason` one word for programs."""

    type: str
    status: str
    reason: str
    message: str = ""


def conditions(
    found: Iterable[Condition], before: Iterable[Mapping[str, Any]], *, generation: int, now: datetime
) -> list[dict[str, Any]]:
    """Return conditions as a status has them; one whose status is as before keeps the time of its last transition."""
    known = {each.get("type"): each for each in before}
    result = []
    for each in found:
        was = known.get(each.type, {})
        kept = was.get("lastTransitionTime") if was.get("status") == each.status else None
        result.append(
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "observedGeneration": generation,
                "lastTransitionTime": kept or f"{now:%Y-%m-%dT%H:%M:%SZ}",
            }
        )
    return result
