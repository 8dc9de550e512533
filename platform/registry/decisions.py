"""Who wants to know that somebody approved or declined a version? Whoever does registers a listener."""

from collections.abc import Callable

from registry.models import ModelVersion

Listener = Callable[[ModelVersion], None]
"""Takes the version as it is now; called in the transaction of the decision."""

_listeners: list[Listener] = []


def register(listener: Listener) -> None:
    """Tell `listener` from now on; registering it twice changes nothing."""
    if listener not in _listeners:
        _listeners.append(listener)


def tell(version: ModelVersion) -> None:
    """Tell every listener."""
    for listener in _listeners:
        listener(version)
