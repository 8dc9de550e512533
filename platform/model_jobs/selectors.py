"""Queries of builds and tunings together: of a version, running ones, recent failures, and change markers."""

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from deployments.mapping import placed_resources
from deployments.models import Revision
from events.services.live_feed import Marks
from jobs.domain.attempts import STOPPED, Status
from model_jobs.builds.domain.order import BuildOrder
from model_jobs.models import Build, Tuning
from model_jobs.tunings.domain.order import TuningOrder
from registry.hooks import Work


@dataclass(frozen=True, slots=True)
class OnGpu:
    """A service, NAMESPACE/NAME, and the GPU or slice of its newest replicas."""

    name: str
    resource: str


def works_of(version_id: int, limit: int) -> list[Work]:
    """Return the latest builds and tunings of a version, newest first."""
    of = Q(model_version=version_id)
    rows: list[Build | Tuning] = [*_builds(of).order_by("-pk")[:limit], *_tunings(of).order_by("-pk")[:limit]]
    return [_work(row) for row in sorted(rows, key=lambda row: row.created_at, reverse=True)[:limit]]


def works_going(*, only: Q, limit: int) -> list[Work]:
    """Return the running ones, oldest order first.

    Args:
        only: a condition on builds and tunings.
    """
    of = Q(status=Status.PENDING.value) & only
    rows: list[Build | Tuning] = [*_builds(of).order_by("pk")[:limit], *_tunings(of).order_by("pk")[:limit]]
    return [_work(row) for row in sorted(rows, key=lambda row: row.created_at)[:limit]]


def works_failed(*, only: Q, since: datetime, limit: int) -> list[Work]:
    """Return recent failures without a user's decision, newest first.

    Args:
        only: a condition on builds and tunings.
    """
    of = Q(status=Status.FAILED.value, finished_at__gte=since) & ~Q(reason=STOPPED) & only
    rows: list[Build | Tuning] = [
        *_builds(of).order_by("-finished_at")[:limit],
        *_tunings(of).order_by("-finished_at")[:limit],
    ]
    return [_work(row) for row in sorted(rows, key=lambda row: row.finished_at or since, reverse=True)[:limit]]


def services_on_gpus(*, cluster_id: int, only: Q, limit: int) -> list[OnGpu]:
    """Return the services of a cluster whose replicas have a GPU or slice, by namespace and name.

    Args:
        only: a condition on revisions.
    """
    rows = Revision.objects.filter(only, service__cluster=cluster_id, stopped_at=None).exclude(accelerator="")
    found = rows.select_related("service").order_by("service__namespace", "service__name", "number")
    newest = {row.service_id: OnGpu(str(row.service), placed_resources(row).accelerator) for row in found}
    return list(newest.values())[:limit]


def build_marks(builds: Collection[int]) -> Marks:
    """Return change markers of these builds; none for all together."""
    return _marks(Build.objects.filter(pk__in=builds), "version__status")


def tuning_marks(tunings: Collection[int]) -> Marks:
    """Return change markers of these tunings; none for all together."""
    return _marks(Tuning.objects.filter(pk__in=tunings))


def stage_of(row: Build | Tuning) -> str:
    """Return the current stage of a running one."""
    one = "build" if isinstance(row, Build) else "tuning"
    if row.claim is None:
        again = f" after it broke off: {row.reason}" if row.reason else ""
        return f"it waits for its turn{again}; cluster {row.cluster.name} makes one {one} at a time"
    if stage := row.progress.get("stage"):
        return str(stage)
    if measurements := row.progress.get("measurements"):
        return f"{measurements} measured, {row.progress.get('spent') or 0:.0%} of its time spent"
    return "it begins"


def _marks(rows: "QuerySet[Any]", *more: str) -> Marks:
    columns = rows.values_list("pk", "status", "reason", "claim", "progress", *more)
    return Marks(0, {pk: (0, zlib.crc32(repr(said).encode())) for pk, *said in columns})


def _builds(of: Q) -> QuerySet[Build]:
    return Build.objects.filter(of).select_related("cluster", "model_version__model")


def _tunings(of: Q) -> QuerySet[Tuning]:
    return Tuning.objects.filter(of).select_related("cluster", "model_version__model").defer("plot")


def _work(row: Build | Tuning) -> Work:
    version, is_build = row.model_version, isinstance(row, Build)
    name = f"deployments:{'build' if is_build else 'tuning'}-detail"
    what = BuildOrder.from_json(row.order).words if is_build else TuningOrder.from_json(row.order).words
    detail = stage_of(row) if row.status == Status.PENDING else row.reason
    page = reverse(name, args=[version.model.name, version.number, row.pk])
    at = row.finished_at or row.created_at
    return Work(what, version.model.name, version.number, row.status, detail, page, at)
