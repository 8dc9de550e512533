"""Who wants to know that what may be rolled out changed? Whoever does registers a listener; the registry knows none."""

from collections.abc import Callable

Listener = Callable[[str], None]
"""Takes the model's name; called in the transaction in which an alias of it is moved or deleted,
or a version of it may be served now that might not before."""

_listeners: list[Listener] = []


def register(listener: Listener) -> None:
    """Tell `listener` from now on; registering it twice changes nothing."""
    if listener not in _listeners:
        _listeners.append(listener)


def tell(model: str) -> None:
    """Tell every listener."""
    for listener in _listeners:
        listener(model)
