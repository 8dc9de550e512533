"""Hooks: callbacks that other apps register for changes of models and for queries of the registry.

The registry imports none of those apps: they register functions when their application starts (`apps.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from common.hooks import Hook
from integrations.clusters.base import ClusterDriver
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion


@dataclass(frozen=True, slots=True, order=True)
class Use:
    """A use of a version: a phrase such as `service default/digits (revision digits-00002)`, and its page.

    Attributes:
        namespace: users who may see it may see the use.
        version_id: the used version.
        live_as: the user's name where it serves the version now, such as `default/digits`; else empty.
        is_history: a past use, which is dropped when the version is deleted.
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
        detail: its progress, or why it failed; may be empty.
        page: its address.
        at: time of its order, or of its end.
    """

    what: str
    model: str
    version: int
    status: str
    detail: str
    page: str
    at: datetime


model_moved: Hook[[str], None] = Hook()
"""A model's name, in the transaction that moves or deletes an alias of it, or makes a version of it deployable."""
version_checked: Hook[[ModelVersion, Status, str, datetime], None] = Hook()
"""The version, its new status, the reason in words and the time, in the transaction of the outcome."""
version_decided: Hook[[ModelVersion], None] = Hook()
"""The version that a user approved or declined, in the transaction of the decision."""
version_deleted: Hook[[Iterable[int], datetime], None] = Hook()
"""Ids of versions that are about to be deleted, and the time, in that transaction: their history is dropped."""
uses: Hook[[Iterable[int]], Iterable[Use]] = Hook()
"""Ids of versions; returns their uses. A version in use is not deleted."""
works: Hook[[int, int], Iterable[Work]] = Hook()
"""A version's id and a limit; returns the jobs made with it, newest first."""
job_driver: Hook[[datetime], ClusterDriver] = Hook()
"""The time; returns the driver of the cluster that checks models without a service; one function is registered."""
jobs_at_once: Hook[[datetime], int] = Hook()
"""The time; returns how many jobs that cluster runs at once; one function is registered."""
measured_on: Hook[[datetime], tuple[str, ...]] = Hook()
"""The time; returns the extended resources, GPUs and slices, on which models are benchmarked there beside the CPU."""


def uses_of(version_ids: Iterable[int]) -> list[Use]:
    """Return every use of these versions, without duplicates, in a stable order."""
    ids = list(version_ids)
    return sorted({use for found in uses(ids) for use in found}) if ids else []


def forget_history(version_ids: Iterable[int], now: datetime) -> None:
    """Drop the history of these versions."""
    if ids := list(version_ids):
        version_deleted(ids, now)


def works_of(version_id: int, limit: int) -> list[Work]:
    """Return the latest jobs made with a version, newest first."""
    found = [work for works_of_app in works(version_id, limit) for work in works_of_app]
    return sorted(found, key=lambda work: work.at, reverse=True)[:limit]
