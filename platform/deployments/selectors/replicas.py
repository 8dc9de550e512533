"""Last observed replicas of a service."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deployments.models import InferenceService


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A pod, or a process of this machine.

    Attributes:
        phase: Starting, Ready, BackingOff or Draining.
        started_at: start of the running process; None without one.
        message: why it is not ready, or how its last process ended.
    """

    name: str
    revision: str
    phase: str
    restarts: int
    started_at: datetime | None
    message: str


def replica_views(*, service: InferenceService) -> list[ReplicaView]:
    """Return the replicas of all revisions of a service by name; reads no database."""
    found = [
        _view(revision, replica)
        for revision, seen in service.observed.items()
        for replica in seen.get("replicas", ())  # none in rows of an earlier release
    ]
    return sorted(found, key=lambda each: each.name)


def _view(revision: str, replica: dict[str, Any]) -> ReplicaView:
    at = replica["started_at"]
    return ReplicaView(
        name=replica["name"],
        revision=revision,
        phase=replica["phase"],
        restarts=replica["restarts"],
        started_at=None if at is None else datetime.fromtimestamp(at, tz=UTC),
        message=replica["message"],
    )
