"""Who wants to know that a version's check ended? Whoever does registers a listener; the registry knows none."""

from collections.abc import Callable
from datetime import datetime

from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion

Listener = Callable[[ModelVersion, Status, str, datetime], None]
"""Takes the version, what it became, the reason in words and the moment; called in the transaction of the outcome."""

_listeners: list[Listener] = []


def register(listener: Listener) -> None:
    """Tell `listener` from now on; registering it twice changes nothing."""
    if listener not in _listeners:
        _listeners.append(listener)


def tell(version: ModelVersion, status: Status, reason: str, now: datetime) -> None:
    """Tell every listener."""
    for listener in _listeners:
        listener(version, status, reason, now)
