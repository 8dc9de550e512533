"""Pages of clusters: health, restarts and events of their components, services, GPUs, prices, and a readiness check."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.contrib import messages
from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, is_administrator, require, visible
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from clusters import hooks
from clusters.domain.pricing import REPLICA
from clusters.models import Cluster
from clusters.selectors import cluster_get, cluster_query, prices_of
from clusters.services.clusters import cluster_check
from clusters.services.credential_expiry import expiries, expiry_findings
from clusters.services.prices import cluster_prices_set
from common.db.count import count_up_to
from common.http.error_pages import is_fragment, leave
from events.selectors import EventView, cluster_events_newest
from integrations.machine.limits import Level, Limit

EVENTS_SHOWN = 25
SERVICES_SHOWN = 50
PUBLIC_SHOWN = 20
_PRICE = "price "
LOOKED_LATELY = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Part:
    """One component; its state is `up`, `down`, or `unknown` without a recent observation."""

    name: str
    state: str
    restarts: int | None
    message: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """A limit of the machine; its level is `unknown` without a recent observation, or where it cannot be read."""

    name: str
    level: str
    use: str
    message: str


@dataclass(frozen=True, slots=True)
class PriceRow:
    """Hourly price of a replica with a resource; None where it is not set."""

    resource: str
    per_hour: float | None


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster with its components and its newest events."""

    name: str
    kind: str
    checked_at: datetime | None
    problem: str
    silent_since: datetime | None
    parts: tuple[Part, ...]
    limits: tuple[LimitRow, ...]
    events: tuple[EventView, ...]


@dataclass(frozen=True, slots=True)
class PublicServices:
    """Services of a cluster that everybody may call, the first ones by name, and how many there are."""

    shown: tuple[Any, ...]
    count: int


@never_cache
@require_safe
@page_scope(Scope.READ)
def platform_page(request: HttpRequest) -> HttpResponse:
    """Show every cluster with its components."""
    now = timezone.now()
    clusters = list(cluster_query().order_by("name"))
    events = cluster_events_newest(cluster_ids=[each.pk for each in clusters], limit=EVENTS_SHOWN)
    views = [_view(cluster, now, events[cluster.pk]) for cluster in clusters]
    token = page_token(request)
    public = {cluster.name: _public(cluster, visible(token, Owned.NAMESPACE, "namespace")) for cluster in clusters}
    context = {"clusters": [(view, public[view.name]) for view in views], "may_add": is_administrator(token)}
    return render(request, "deployments/platform.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def cluster_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one cluster: its components, how it is reached, and those of its services that the viewer may see."""
    cluster, token = cluster_get(name=name), page_token(request)
    events = cluster_events_newest(cluster_ids=[cluster.pk], limit=EVENTS_SHOWN)[cluster.pk]
    [services] = hooks.services_worst_first(cluster, visible(token, Owned.NAMESPACE, "namespace"))
    context = {
        "cluster": _view(cluster, timezone.now(), events),
        "row": cluster,
        "way": _way(cluster),
        "expiring": list(expiry_findings(cluster, timezone.now())) if is_administrator(token) else [],
        "credentials": expiries(cluster) if is_administrator(token) else (),
        "services": services.only("cluster", "namespace", "name", "phase", "reason", "seen_at")[:SERVICES_SHOWN],
        "services_count": count_up_to(services),
        "may_check": is_administrator(token),
        "prices": _price_rows(cluster),
        "currency": prices_of(cluster).currency,
    }
    return render(request, "deployments/cluster_detail.html", context)


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def cluster_check_page(request: HttpRequest, name: str) -> HttpResponse:
    """Check now whether services can run on the cluster, and show the result: alone, or as a page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    cluster = cluster_get(name=name)
    findings = cluster_check(cluster=cluster, namespaces=(), now=timezone.now())
    context = {"cluster": cluster, "findings": findings, "ok": all(f.ok for f in findings)}
    return _answer(request, "Check", "deployments/_cluster_check.html", context)


@require_POST
@page_scope(Scope.ADMIN)
def cluster_prices_action(request: HttpRequest, name: str) -> HttpResponse:
    """Set hourly prices of replicas, by fields named as the resources; an empty field removes the price."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    fields = [field for field in request.POST if field.startswith(_PRICE)]
    named = {field.removeprefix(_PRICE): request.POST.get(field, "").strip() for field in fields}
    document = {
        "currency": request.POST.get("currency", ""),
        "per_hour": {name: _number(text) for name, text in named.items() if text},
    }
    cluster_prices_set(name=name, document=document, actor=page_actor(request), now=timezone.now())
    messages.success(request, "The prices are set.")
    return leave(request, "deployments:cluster-detail", name)


def _number(text: str) -> float | str:
    """Return a typed number; other text is returned for validation to refuse by its name."""
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return text


def _price_rows(cluster: Cluster) -> list[PriceRow]:
    """Return a row for each kind of replica that exists or has a price."""
    prices = prices_of(cluster)
    names = {REPLICA, *chain.from_iterable(hooks.resources_used(cluster)), *(prices.per_hour or {})}
    return [PriceRow(name, prices.of(name)) for name in sorted(names, key=lambda name: (name != REPLICA, name))]


def _public(cluster: Cluster, only: Q) -> PublicServices:
    [services] = hooks.services_public(cluster, only)
    found = tuple(services.only("namespace", "name")[: PUBLIC_SHOWN + 1])
    return PublicServices(found[:PUBLIC_SHOWN], count_up_to(services) if len(found) > PUBLIC_SHOWN else len(found))


def _answer(request: HttpRequest, what: str, fragment: str, context: dict[str, Any]) -> HttpResponse:
    """Show the result of the cluster's query: alone, or as a page."""
    if is_fragment(request):
        return render(request, fragment, context)
    return render(request, "deployments/cluster_answer.html", {**context, "what": what, "fragment": fragment})


def _view(cluster: Cluster, now: datetime, events: tuple[EventView, ...]) -> ClusterView:
    return ClusterView(
        cluster.name,
        cluster.kind,
        cluster.checked_at,
        cluster.problem,
        cluster.silent_since,
        parts_of(cluster, now),
        limits_of(cluster, now),
        events,
    )


def _way(cluster: Cluster) -> str:
    """Return how the cluster is reached, in words."""
    if cluster.document is None:
        return "this machine"
    connection = cluster.document["connection"]
    if connection.get("inCluster"):
        return "as a pod of it"
    if path := connection.get("kubeconfigPath"):
        return f"by the kubeconfig {path}"
    return "by a kubeconfig that is stored"


def parts_of(cluster: Cluster, now: datetime) -> tuple[Part, ...]:
    """Return the components as last observed, and beat, whose job is to have them observed.

    An observing worker leaves `checked_at` behind. So without a recent one beat or the worker is down, and the rest is
    unknown; with one, but with a `problem`, the agent returned nothing.
    """
    is_recent = _is_recent(cluster, now)
    is_known = is_recent and not cluster.problem
    looks = "has the worker look every two seconds" if is_recent else "no recent report: it or the worker is down"
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


def limits_of(cluster: Cluster, now: datetime) -> tuple[LimitRow, ...]:
    """Return the limits of the machine as last observed; empty for a cluster of several machines."""
    is_known = _is_recent(cluster, now) and not cluster.problem
    rows = []
    for row in cluster.limits:
        limit = Limit(row["name"], row["used"], row["most"], row["whose"])
        if is_known and limit.percent is not None:
            use = f"{limit.amount(limit.used)} of {limit.amount(limit.most)} ({limit.whose})"
            rows.append(LimitRow(limit.name, row["level"], use, row["message"]))
        else:
            rows.append(LimitRow(limit.name, Level.UNKNOWN, "", ""))
    return tuple(rows)


def _is_recent(cluster: Cluster, now: datetime) -> bool:
    """Return whether the observation is recent; an unreachable cluster is not queried meanwhile."""
    last = max(filter(None, (cluster.checked_at, cluster.look_at)), default=None)
    return last is not None and now - last <= LOOKED_LATELY
