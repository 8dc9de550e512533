"""Who uses a model version? Whoever does registers a provider; the registry asks before it deletes.

The registry knows nothing of services: `deployments` registers its provider when its application starts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A phrase such as `service default/digits (revision digits-00002)`, and the page about it.

    Attributes:
        namespace: who may see it may know of the use.
        version_id: what is used.
        live_as: the user's name where it serves the version now, such as `default/digits`; empty where it only could.
        is_history: it is only remembered, and is forgotten when the version is deleted.
    """

    phrase: str
    page: str = ""
    namespace: str = ""
    version_id: int = 0
    live_as: str = ""
    is_history: bool = False

    def __str__(self) -> str:
        return self.phrase


Provider = Callable[[Iterable[int]], Iterable[Use]]
"""Takes ids of versions; returns their uses."""

Forgetter = Callable[[Iterable[int], datetime], None]
"""Takes ids of versions that are about to be deleted, and the moment; called in that transaction."""

_providers: list[Provider] = []
_forgetters: list[Forgetter] = []


def register(provider: Provider) -> None:
    """Ask `provider` from now on; registering it twice changes nothing."""
    if provider not in _providers:
        _providers.append(provider)


def unregister(provider: Provider) -> None:
    """Ask `provider` no more."""
    _providers.remove(provider)


def register_history(forgetter: Forgetter) -> None:
    """Have `forgetter` forget the history of versions before they are deleted; registering it twice changes nothing."""
    if forgetter not in _forgetters:
        _forgetters.append(forgetter)


def forget_history(version_ids: Iterable[int], now: datetime) -> None:
    """Forget what only remembers these versions."""
    ids = list(version_ids)
    for forgetter in _forgetters if ids else ():
        forgetter(ids, now)


def uses_of(version_ids: Iterable[int]) -> list[Use]:
    """Return every use of these versions, without repeats, in a stable order."""
    ids = list(version_ids)
    return sorted({use for provider in _providers for use in provider(ids)}) if ids else []
