"""Queries of a service's replays."""

import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from django.db.models import QuerySet

from common.errors import NotFound
from common.files.document import Document
from deployments.domain.comparison.comparison_policy import Terms
from deployments.domain.comparison.stored import stored_report
from deployments.domain.comparison.summary import Summary, summary_of
from deployments.domain.policy.comparison import parse_terms
from deployments.models import InferenceService
from events.services.live_feed import Marks
from jobs.domain.attempts import Status
from recordings.models import Replay


@dataclass(frozen=True, slots=True)
class ReplayView:
    """A replay as pages show it; `summary` is None until it is DONE."""

    row: Replay
    summary: Summary | None


def replay_query(*, service: InferenceService) -> QuerySet[Replay]:
    """Return the service's replays."""
    return Replay.objects.select_related("service", "model_version__model").filter(service=service)


def replay_get(*, namespace: str, name: str, replay_id: int) -> Replay:
    """Return a replay of the service; raises NotFound."""
    found = Replay.objects.select_related("service", "model_version__model").filter(
        service__namespace=namespace, service__name=name, pk=replay_id
    )
    row = found.first()
    if row is None:
        raise NotFound(f"service {namespace}/{name} has no replay {replay_id}")
    return row


def replays_newest(*, service_id: int, limit: int) -> list[ReplayView]:
    """Return the newest replays of a service."""
    rows = Replay.objects.select_related("model_version").filter(service=service_id)
    return replay_views(rows.order_by("-pk")[:limit])


def replays_of(*, recording_id: int, limit: int) -> list[ReplayView]:
    """Return the newest replays of a recording."""
    rows = Replay.objects.select_related("model_version").filter(recording=recording_id)
    return replay_views(rows.order_by("-pk")[:limit])


def replay_views(rows: Iterable[Replay]) -> list[ReplayView]:
    """Return replays as pages show them, in the order given."""
    return [ReplayView(row, replay_summary(row) if row.status == Status.DONE else None) for row in rows]


def replay_marks(replays: Collection[int]) -> Marks:
    """Return change markers of these replays; none for all together."""
    columns = Replay.objects.filter(pk__in=replays).values_list("pk", "done", "status", "reason", "claim", "recording")
    return Marks(0, {pk: (done, zlib.crc32(repr(said).encode())) for pk, done, *said in columns})


def replay_summary(row: Replay) -> Summary:
    """Return the comparison's summary of an ended replay."""
    return summary_of(stored_report(row.report, row.worst), replay_terms(row))


def replay_terms(row: Replay) -> Terms:
    """Return the criteria of the comparison."""
    return parse_terms(Document.of(row.terms, "comparison", "comparison"))
