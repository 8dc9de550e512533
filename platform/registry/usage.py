"""Who uses a model version? Whoever does registers a provider; the registry asks before it deletes.

The registry knows nothing of services: `deployments` registers its provider when its application starts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A phrase such as `service default/digits (revision digits-00002)`, and the page about it.

    Attributes:
        namespace: who may see it may know of the use.
        version_id: what is used.
        live_as: the user's name where it serves the version now, such as `default/digits`; empty where it only could.
    """

    phrase: str
    page: str = ""
    namespace: str = ""
    version_id: int = 0
    live_as: str = ""

    def __str__(self) -> str:
        return self.phrase


Provider = Callable[[Iterable[int]], Iterable[Use]]
"""Takes ids of versions; returns their uses."""

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """Ask `provider` from now on; registering it twice changes nothing."""
    if provider not in _providers:
        _providers.append(provider)


def unregister(provider: Provider) -> None:
    """Ask `provider` no more."""
    _providers.remove(provider)


def uses_of(version_ids: Iterable[int]) -> list[Use]:
    """Return every use of these versions, without repeats, in a stable order."""
    ids = list(version_ids)
    return sorted({use for provider in _providers for use in provider(ids)}) if ids else []
