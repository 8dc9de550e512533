"""Hooks: what other apps do when models change, and what the registry asks of them.

The registry imports none of those apps: they register functions when their application starts (`apps.py`).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, ParamSpec, TypeVar

from integrations.clusters.base import ClusterDriver
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion

P = ParamSpec("P")
R = TypeVar("R")


class Hook(Generic[P, R]):
    """Functions that are called together, in the order in which they were registered."""

    def __init__(self) -> None:
        self._functions: list[Callable[P, R]] = []

    def register(self, function: Callable[P, R]) -> None:
        """Call `function` from now on; registering it twice changes nothing."""
        if function not in self._functions:
            self._functions.append(function)

    def unregister(self, function: Callable[P, R]) -> None:
        """Call `function` no more."""
        self._functions.remove(function)

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> list[R]:
        """Return what each function returns."""
        return [function(*arguments, **named) for function in self._functions]


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


model_moved: Hook[[str], None] = Hook()
"""A model's name, in the transaction in which an alias of it is moved or deleted, or a version of it may be served now
that might not before."""
version_checked: Hook[[ModelVersion, Status, str, datetime], None] = Hook()
"""The version, what it became, the reason in words and the moment, in the transaction of the outcome."""
version_decided: Hook[[ModelVersion], None] = Hook()
"""The version as somebody approved or declined it, in the transaction of the decision."""
version_deleted: Hook[[Iterable[int], datetime], None] = Hook()
"""Ids of versions that are about to be deleted, and the moment, in that transaction: their history is forgotten."""
uses: Hook[[Iterable[int]], Iterable[Use]] = Hook()
"""Ids of versions; returns their uses. What is in use is not deleted."""
works: Hook[[int, int], Iterable[Work]] = Hook()
"""A version's id and how many to return; returns what was made with it, newest first."""
job_driver: Hook[[], ClusterDriver] = Hook()
"""The driver of the cluster on which models are checked that no service runs yet; one function is registered."""
measured_on: Hook[[], tuple[str, ...]] = Hook()
"""Extended resources, GPUs and slices of them, on which models are measured there beside the CPU."""


def uses_of(version_ids: Iterable[int]) -> list[Use]:
    """Return every use of these versions, without repeats, in a stable order."""
    ids = list(version_ids)
    return sorted({use for found in uses(ids) for use in found}) if ids else []


def forget_history(version_ids: Iterable[int], now: datetime) -> None:
    """Forget what only remembers these versions."""
    if ids := list(version_ids):
        version_deleted(ids, now)


def works_of(version_id: int, limit: int) -> list[Work]:
    """Return what was made last with a version, newest first."""
    found = [work for works_of_app in works(version_id, limit) for work in works_of_app]
    return sorted(found, key=lambda work: work.at, reverse=True)[:limit]
