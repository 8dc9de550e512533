"""Event kinds grouped by subject, for the webhook form."""

from collections.abc import Sequence
from dataclasses import dataclass

_ABOUT = {
    "Rollouts": ("Rollout", "Rollback", "ConfirmRollout"),
    "Services": ("Service", "Revision", "Replica", "Drift"),
    "Models and versions": ("Model", "Version", "Import", "Alias"),
    "Recorded requests": ("Recording", "Replay"),
    "Clusters": ("Component", "Limit", "Repartition"),
}
"""Prefixes of the names of a group's events."""
_REST = "Others"


@dataclass(frozen=True, slots=True)
class Group:
    """Events of one subject; never empty."""

    title: str
    events: tuple[str, ...]


def grouped(events: Sequence[str]) -> tuple[Group, ...]:
    """Return every event once, in the given order within its group; events of no group come last."""
    found: dict[str, list[str]] = {title: [] for title in (*_ABOUT, _REST)}
    for event in events:
        found[next((title for title, starts in _ABOUT.items() if event.startswith(starts)), _REST)].append(event)
    return tuple(Group(title, tuple(names)) for title, names in found.items() if names)
