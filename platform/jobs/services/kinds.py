"""Kinds of leased jobs: what differs from one kind to another; claims, retries, runner and pods are the same for all.

A new kind is a model of rows, an order and a report (pure), a `JobKind` that joins them, and what people see of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Generic, TypeVar
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils.module_loading import import_string

from integrations.artifacts.store import StoredArtifact
from integrations.clusters.base import ClusterDriver
from jobs.domain.attempts import RETRIES, AttemptState, Retries, Status
from jobs.models import ClaimedJob

Row = TypeVar("Row", bound=ClaimedJob)
Order = TypeVar("Order")
Report = TypeVar("Report")
Driver = Callable[[], ClusterDriver]
Note = Callable[[Mapping[str, object] | None], None]
"""Takes new values of the columns of progress, or None without news; what it raises ends the work."""
_registered: dict[str, str] = {}


class Pods(StrEnum):
    """Whose identity a job's pods have: by it they fetch their model."""

    OF_JOB = "job"
    """Rows have a `cluster` and a `model_version`."""
    OF_SERVICE = "service"
    """Rows have a `service` and a `model_version`."""
    NONE = "none"
    """It runs in the worker."""


@dataclass(frozen=True, slots=True)
class JobClaim(Generic[Row, Order]):
    """Claim to run one job and to write its end.

    Attributes:
        id: fences all later writes of its worker; pods fetch and bring files under it.
        row: as it was when the attempt began.
        order: what the work needs, such as a `Job` with its command line.
    """

    id: UUID
    row: Row
    order: Order
    cluster_id: int


def _same_cluster(row: Any) -> Q:
    return Q(cluster=row.cluster_id)


def _cluster_of(row: Any) -> int:
    return int(row.cluster_id)


def _one(_row: Any) -> int:
    return 1


def _possible(_row: Any) -> str:
    return ""


def _ended(_row: Any, _state: AttemptState, _now: datetime) -> None:
    """Do nothing more at the end of a job."""


@dataclass(frozen=True, slots=True)
class JobKind(Generic[Row, Order, Report]):
    """A kind of leased jobs.

    Attributes:
        noun: names one in logs, as in `build 5`.
        order: returns what the work needs, from a row and the claim's id.
        work: does the work, with the driver of its cluster, and returns its report. With no transaction open. It raises
            InvalidInput where the job is impossible, and any other error where another attempt may succeed.
        write: writes the report into the row, which is saved afterwards, in one transaction.
        progress: columns of progress, as they are before an attempt.
        fresh: further columns that an attempt begins with.
        most: returns how many run at a time, of those that `beside` selects for a row.
        beside: a condition on the jobs that share the limit with a row.
        cluster_of: the id of the cluster where a row's job runs.
        impossible: why a due job can no longer be done; empty if it can.
        ended: called in the transaction that ends a job.
        related: what orders and ends read of a row.
        pods: whose identity its pods have.
        request: returns the request that a job's pod fetches; None where pods fetch none.
        result: returns the columns of files that a job's pod brings; None where pods bring none.
        done: the word of a row's status at the end that an order is for.
        retries: how often it is tried, and when again.
        kept: how long rows are kept; None for as long as their version.
    """

    noun: str
    model: type[Row]
    order: Callable[[Row, UUID], Order]
    work: Callable[[JobClaim[Row, Order], Driver, Note], Report]
    write: Callable[[Row, Report, datetime], None]
    progress: Mapping[str, object]
    fresh: Mapping[str, object] = field(default_factory=dict)
    most: Callable[[Row], int] = _one
    beside: Callable[[Row], Q] = _same_cluster
    cluster_of: Callable[[Row], int] = _cluster_of
    impossible: Callable[[Row], str] = _possible
    ended: Callable[[Row, AttemptState, datetime], None] = _ended
    related: tuple[str, ...] = ("model_version__model",)
    pods: Pods = Pods.OF_JOB
    request: Callable[[Row], str] | None = None
    result: Callable[[StoredArtifact], Mapping[str, object]] | None = None
    done: str = Status.DONE.value
    retries: Retries = RETRIES
    kept: timedelta | None = None

    @property
    def rows(self) -> QuerySet[Row]:
        """Return all jobs of this kind, with what is related."""
        rows = self.model._default_manager.all()
        return rows.select_related(*self.related) if self.related else rows

    @property
    def pending(self) -> QuerySet[Row]:
        """Return the jobs that have not ended."""
        return self.model._default_manager.filter(status=Status.PENDING.value)

    def held(self, claim_id: UUID) -> QuerySet[Row]:
        """Return the job with a claim of that id, if any."""
        return self.pending.filter(claim=claim_id)


def register(noun: str, path: str) -> None:
    """Register the kind at a dotted path, which is imported when it is first used. Called when applications start."""
    _registered[noun] = path


def kinds() -> list[JobKind[Any, Any, Any]]:
    """Return the registered kinds, in their order of registration."""
    return [import_string(path) for path in _registered.values()]
