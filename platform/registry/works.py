"""What is made with a version? Whoever makes it registers a provider; the version's page asks.

The registry knows nothing of builds and tunings: `deployments` registers its provider when its application starts.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Work:
    """A build or a tuning in a line.

    Attributes:
        what: such as `ONNX in INT8` or `tuning for a p99 of 20 ms`.
        status: PENDING, DONE or FAILED.
        stands: how far it is, or why it failed; empty where all is well.
        page: its address.
        at: when it was asked for, or when it ended.
    """

    what: str
    model: str
    version: int
    status: str
    stands: str
    page: str
    at: datetime


Provider = Callable[[int, int], Iterable[Work]]
"""Takes a version's id and how many to return; returns them, newest first."""

_providers: list[Provider] = []


def register(provider: Provider) -> None:
    """Ask `provider` from now on; registering it twice changes nothing."""
    if provider not in _providers:
        _providers.append(provider)


def works_of(version_id: int, limit: int) -> list[Work]:
    """Return what was made last with a version, newest first."""
    found = [work for provider in _providers for work in provider(version_id, limit)]
    return sorted(found, key=lambda work: work.at, reverse=True)[:limit]
