"""Home page as a value: pending actions of the viewer, failures, rollouts in progress, live services, recent events."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.utils import timezone

from accounts.auth.access import Place, may, may_names, permitted, visible
from accounts.domain.approver import Approver
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from common.db.count import MOST
from console.selectors.home import (
    clusters_broken,
    happenings_newest,
    home_counts,
    home_marks,
    rollouts_ended_badly,
    rollouts_in_progress,
    services_broken,
    services_live,
)
from deployments.domain.phases import Phase
from deployments.models import Rollout
from deployments.selectors import NO_TRAFFIC, RolloutView, rollout_views, service_views, traffic_of
from deployments.web.presentation import ServiceRow, progress_of, service_row
from events.web.live_updates import Page
from gpus.selectors.repartitions import repartitions_proposed
from model_jobs.selectors import works_failed, works_going
from registry.selectors import model_list, versions_to_approve

BADLY_WITHIN = timedelta(days=1)
LOADED = 60
"""Limit of rollouts in progress that are read; those that wait for users come first."""
SHOWN = 8
LATELY_SHOWN = 14


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """A rollout in a line.

    Attributes:
        asks: the viewer's pending action, as a button's label; may be empty.
    """

    namespace: str
    name: str
    rollout: RolloutView
    progress: str
    asks: str = ""


def home_page(token: ApiToken) -> Page:
    """Return Home as the token's user sees it."""
    # The marks first: a change between the reads is sent again, not lost.
    cursor, now = home_marks().everything, timezone.now()
    only = visible(token, Owned.NAMESPACE, "namespace")
    counts = home_counts(only=only)
    going = rollouts_in_progress(only=only, limit=LOADED)
    ended = rollouts_ended_badly(only=only, now=now, within=BADLY_WITHIN, limit=SHOWN)
    decides_in = may_names(token, Scope.WRITE, Owned.NAMESPACE, {row.service.namespace for row in going})
    views = {view.id: view for view in rollout_views([*going, *ended], now=timezone.now())}
    in_progress = [_row(row, views, token.approver, may_decide=row.service.namespace in decides_in) for row in going]
    waiting = [row for row in in_progress if row.asks]
    rolling = [row for row in in_progress if not row.asks]
    cuts = repartitions_proposed(limit=SHOWN) if may(token, Scope.ADMIN, Place.installation()) else []
    decided_of = permitted(token, Scope.WRITE, Owned.MODEL, "model__name")
    versions = versions_to_approve(only=decided_of, approver=token.approver, limit=SHOWN)
    clusters = clusters_broken()
    of_models = visible(token, Owned.MODEL, "model_version__model__name")
    making = works_going(only=of_models, limit=SHOWN)
    unmade = works_failed(only=of_models, since=now - BADLY_WITHIN, limit=SHOWN)
    broken, live = services_broken(only=only, limit=SHOWN), services_live(only=only, limit=SHOWN)
    services = service_views(dict.fromkeys([*broken, *live]), now=timezone.now())
    traffic = traffic_of([service.id for service in services], now)
    rows = {service.id: service_row(service, traffic.get(service.id, NO_TRAFFIC)) for service in services}
    return Page(
        template="deployments/home.html",
        fragments=(
            "deployments/_home_figures.html",
            "deployments/_home_waiting.html",
            "deployments/_home_broken.html",
            "deployments/_home_rolling.html",
            "deployments/_home_live.html",
            "deployments/_home_lately.html",
        ),
        cursor=cursor,
        context={
            "counts": counts,
            "waiting": waiting,
            "cuts": cuts,
            "versions": versions,
            "asked": len(waiting) + len(cuts) + len(versions),
            "are_more_waiting": len(going) == LOADED and not rolling,
            "rolling": rolling[:SHOWN],
            "rolling_count": _others(counts.rolling, len(waiting), len(rolling)),
            "broken": _of(broken, rows),
            "ended": [_row(row, views, token.approver, may_decide=False) for row in ended],
            "clusters": clusters,
            "making": making,
            "unmade": unmade,
            "is_empty": not (counts.services or clusters or cuts or versions or making or unmade),
            "trouble": counts.broken + len(ended) + len(clusters) + len(unmade),
            "live": _of(live, rows),
            "lately": happenings_newest(only=visible(token, Owned.NAMESPACE, "service__namespace"), limit=LATELY_SHOWN),
            "has_models": counts.services > 0 or model_list().filter(visible(token, Owned.MODEL, "name")).exists(),
        },
    )


def asks_of(rollout: RolloutView, viewer: Approver) -> str:
    """Return the pending action of a user who may move the rollout; empty where it needs none. Pure."""
    if rollout.approvals.is_awaited:
        return "" if rollout.approvals.refusal(viewer) else "Approve or reject"
    return "Promote or abort" if rollout.phase == Phase.PAUSED else ""


def _others(in_progress: int, waiting: int, seen: int) -> int:
    """Return the number of rollouts under Rollouts in progress, as `common.db.count` counts.

    Args:
        seen: a lower bound.
    """
    return in_progress if in_progress > MOST else max(in_progress - waiting, seen)


def _row(row: Rollout, views: dict[int, RolloutView], viewer: Approver, *, may_decide: bool) -> RolloutRow:
    view = views[row.pk]
    asks = asks_of(view, viewer) if may_decide else ""
    return RolloutRow(row.service.namespace, row.service.name, view, progress_of(view), asks)


def _of(services: Iterable[object], rows: dict[int, ServiceRow]) -> Sequence[ServiceRow]:
    return [rows[service.pk] for service in services]  # type: ignore[attr-defined]
