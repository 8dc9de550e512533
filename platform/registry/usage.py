"""Where is a model version live? Whoever uses versions registers a provider; the registry asks before it deletes.

The registry knows nothing of services: `deployments` registers its provider when its application starts.
"""

from collections.abc import Callable, Iterable

Provider = Callable[[Iterable[int]], Iterable[str]]
"""Takes ids of versions; returns a phrase per use, such as `service default/digits (revision digits-00002)`."""

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """Ask `provider` from now on; registering it twice changes nothing."""
    if provider not in _providers:
        _providers.append(provider)


def unregister(provider: Provider) -> None:
    """Ask `provider` no more."""
    _providers.remove(provider)


def uses_of(version_ids: Iterable[int]) -> list[str]:
    """Return every use of these versions, without repeats, in a stable order."""
    ids = list(version_ids)
    return sorted({use for provider in _providers for use in provider(ids)}) if ids else []
