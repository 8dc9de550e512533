"""Events by what they are about, as a form offers them."""

from collections.abc import Sequence
from dataclasses import dataclass

_ABOUT = {
    "Rollouts": ("Rollout", "Rollback", "ConfirmRollout"),
    "Services": ("Service", "Revision", "Replica", "Drift"),
    "Models and versions": ("Model", "Version", "Import", "Alias"),
    "Recorded requests": ("Recording", "Replay"),
    "Clusters": ("Component", "Limit", "Repartition"),
}
"""What the names of a group's events begin with."""
_REST = "Others"


@dataclass(frozen=True, slots=True)
class Group:
    """Events about the same; no group is empty."""

    title: str
    events: tuple[str, ...]


def grouped(events: Sequence[str]) -> tuple[Group, ...]:
    """Return every event once, in the order given within its group; what begins like none comes last."""
    found: dict[str, list[str]] = {title: [] for title in (*_ABOUT, _REST)}
    for event in events:
        found[next((title for title, starts in _ABOUT.items() if event.startswith(starts)), _REST)].append(event)
    return tuple(Group(title, tuple(names)) for title, names in found.items() if names)
