"""Page values of services: a template's context, and the fragments that change while the page is open.

Called by the views for the whole page and by the event stream for its fragments, so that both always agree.
"""

from dataclasses import dataclass
from itertools import chain

from django.db.models import Q
from django.utils import timezone

from accounts.auth.access import visible
from accounts.domain.roles import Owned
from accounts.models import ApiToken
from deployments import hooks
from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.service_file import PUBLIC
from deployments.reconcile.participants import traffic
from deployments.selectors import (
    NO_TRAFFIC,
    AnalysisRunView,
    ServiceView,
    change_marks,
    earlier_stable_query,
    rollout_policy,
    service_cost,
    service_count_by_phase,
    service_error_budgets,
    service_get,
    service_list,
    service_search,
    service_views,
    traffic_of,
)
from deployments.selectors.replicas import replica_views
from deployments.selectors.services import authority_of
from deployments.web.presentation import (
    Rollback,
    actions_of,
    background_of,
    current_run_of,
    earlier_runs_of,
    headline_of,
    is_copying,
    is_preview,
    never_fits_of,
    progress_of,
    replicas_of,
    rollback_to,
    service_row,
    subject_of,
)
from deployments.web.rollouts.comparison_panel import comparison_of
from deployments.web.rollouts.detectable_effects import foreseen_of
from deployments.web.rollouts.timeline import stations_of
from deployments.web.services.example_request import curl_line
from deployments.web.services.filter import EVERYTHING, LIMIT, ServiceFilter
from events.selectors import events_newest
from events.web.live_updates import Page
from registry.selectors import model_version_get

EVENTS_SHOWN = 25
ROLLBACKS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class PhaseLink:
    """A phase filter of the list, and how many services it has."""

    label: str
    shown: ServiceFilter
    count: int
    is_current: bool


def list_page(token: ApiToken, shown: ServiceFilter = EVERYTHING) -> Page:
    """Return the requested part of the list of services, of those that the caller may see."""
    # The marks first: what changes between the reads is sent again, not lost.
    cursor, now = change_marks().everything, timezone.now()
    only = visible(token, Owned.NAMESPACE, "namespace") & service_search(shown.words)
    by_phase = service_count_by_phase(only=only)
    of_phase = only if shown.phase is None else only & Q(phase=shown.phase)
    services = service_list(only=of_phase, limit=LIMIT + 1, offset=shown.offset, now=timezone.now())
    are_more, services = len(services) > LIMIT, services[:LIMIT]
    traffic = traffic_of([service.id for service in services], now)
    total = sum(by_phase.values()) if shown.phase is None else by_phase.get(shown.phase, 0)
    return Page(
        template="deployments/service_list.html",
        fragments=("deployments/_service_phases.html", "deployments/_services.html"),
        cursor=cursor,
        context={
            "rows": [service_row(service, traffic.get(service.id, NO_TRAFFIC)) for service in services],
            "shown": shown,
            "phases": [PhaseLink("All", shown.of(None), sum(by_phase.values()), shown.phase is None)]
            + [
                PhaseLink(phase, shown.of(phase), by_phase.get(phase, 0), shown.phase is phase)
                for phase in ServicePhase
                if by_phase.get(phase) or shown.phase is phase
            ],
            "is_narrowed": bool(shown.words or shown.phase or shown.page > 1),
            "total": total if shown.offset + len(services) <= total else None,
            "first": shown.offset + 1,
            "last": shown.offset + len(services),
            "before": shown.on(shown.page - 1 if services else _last_page(total, shown)) if shown.page > 1 else None,
            "after": shown.on(shown.page + 1) if are_more else None,
        },
    )


def _last_page(total: int, shown: ServiceFilter) -> int:
    """Return the last page with services, as far as they are counted, before one that has none."""
    return min(shown.page - 1, max(1, -(-total // LIMIT)))


def detail_page(namespace: str, name: str) -> Page:
    """Return the page of one service; raises NotFound."""
    row = service_get(namespace=namespace, name=name)
    service = service_views([row], now=timezone.now())[0]
    run = current_run_of(service.rollout)
    return Page(
        template="deployments/service_detail.html",
        fragments=(
            "deployments/_header.html",
            "deployments/_rollout_head.html",
            "deployments/_approvals.html",
            "deployments/_questions.html",
            "deployments/_rollout_progress.html",
            "deployments/_objectives.html",
            "deployments/_revisions.html",
            "deployments/_replicas.html",
            "deployments/_drift.html",
            "deployments/_feedback.html",
            "deployments/_recordings.html",
            "deployments/_calling.html",
            "deployments/_manage.html",
            "deployments/_events.html",
        ),
        cursor=service.changes,
        context={
            "service": service,
            "is_stopped": row.stopped,
            "rollout": service.rollout,
            "headline": headline_of(service),
            "never_fits": never_fits_of(service),
            "replicas": replicas_of(service),
            "running": replica_views(service=row),
            "cost": service_cost(service=row, now=timezone.now()),
            "objectives": service_error_budgets(service=row, now=timezone.now(), kept=traffic.KEPT),
            "progress": progress_of(service.rollout),
            "stations": stations_of(service.rollout),
            "is_copying": is_copying(service.rollout),
            "is_preview": is_preview(service.rollout),
            "subject": subject_of(service.rollout),
            "actions": actions_of(service),
            "current_run": run,
            "background_run": background_of(service.rollout),
            "foreseen": () if run is None else _foreseen(service, run),
            "earlier_runs": earlier_runs_of(service.rollout),
            "comparison": comparison_of(service.rollout),
            "curl": _curl(service),
            "rollbacks": [] if service.phase == ServicePhase.DELETING else rollbacks_of(service.id),
            "events": events_newest(service_id=service.id, limit=EVENTS_SHOWN),
            **dict(chain.from_iterable(part.items() for part in hooks.service_page(service.id))),
        },
    )


def rollbacks_of(service_id: int) -> list[Rollback]:
    """Return the buttons for rollbacks to earlier revisions, the newest first."""
    return [
        rollback_to(
            revision.name,
            revision.model_version.number,
            revision.created_at,
            is_warm=revision.stopped_at is None,
        )
        for revision in earlier_stable_query(service_id=service_id)[:ROLLBACKS_SHOWN]
    ]


def _foreseen(service: ServiceView, run: AnalysisRunView) -> tuple[str, ...]:
    rollout = service.rollout
    if rollout is None or Phase(rollout.phase).is_finished:
        return ()
    return foreseen_of(run, rollout_policy(rollout_id=rollout.id))


def _curl(service: ServiceView) -> str:
    if service.model_version is None:
        return ""
    version = model_version_get(model=service.model, number=service.model_version)
    return curl_line(
        service.url,
        version.signature.get("inputs", []),
        is_guarded=service.access != PUBLIC,
        authority=authority_of(service.url),
    )
