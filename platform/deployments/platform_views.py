"""The page of the platform's own parts: which of them run, how often they were started again, what happened to them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.permissions import page_scope
from accounts.scopes import Scope
from deployments.models import Cluster
from deployments.selectors import cluster_events_newest, cluster_query
from deployments.shapes import EventView

EVENTS_SHOWN = 25
LOOKED_LATELY = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Part:
    """One part; its state is `up`, `down`, or `unknown` where nobody has looked lately."""

    name: str
    state: str
    restarts: int | None
    message: str


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster with its parts and the newest events of its own."""

    name: str
    kind: str
    checked_at: datetime | None
    problem: str
    parts: tuple[Part, ...]
    events: tuple[EventView, ...]


@never_cache
@require_safe
@page_scope(Scope.READ)
def platform_page(request: HttpRequest) -> HttpResponse:
    """Show every cluster with its parts."""
    now = timezone.now()
    clusters = list(cluster_query().order_by("name"))
    events = cluster_events_newest(clusters=clusters, limit=EVENTS_SHOWN)
    views = [
        ClusterView(
            cluster.name, cluster.kind, cluster.checked_at, cluster.problem, parts_of(cluster, now), events[cluster.pk]
        )
        for cluster in clusters
    ]
    return render(request, "deployments/platform.html", {"clusters": views})


def parts_of(cluster: Cluster, now: datetime) -> tuple[Part, ...]:
    """Return the parts as they were seen last, and beat, whose work is that somebody looks.

    A worker that is told to look leaves `checked_at` behind. So without a recent one beat or the worker is down, and
    nobody knows of the rest; with one, but with a `problem`, the agent told nothing.
    """
    is_recent = cluster.checked_at is not None and now - cluster.checked_at <= LOOKED_LATELY
    is_known = is_recent and not cluster.problem
    looks = (
        "has the worker look every two seconds" if is_recent else "nobody has looked lately: it or the worker is down"
    )
    seen = [
        Part(
            name,
            ("up" if part["ready"] else "down") if is_known else "unknown",
            int(part["restarts"]),
            str(part["message"]),
        )
        for name, part in sorted(cluster.components.items())
    ]
    return (*seen, Part("beat", "up" if is_recent else "down", None, looks))
