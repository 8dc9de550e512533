"""The page of a cluster's GPUs, and what its buttons do."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from clusters.selectors import cluster_get, cluster_query
from clusters.services.connection import LOCAL
from common.errors import FairleadError, NotFound
from common.http.error_pages import leave
from gpus.services.inventory import cluster_nodes, gpus_ask
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_abort, repartition_approve, repartition_decline, repartition_propose
from gpus.web.gpu_page import gpu_page

_OTHERS_SHOWN = 20
_DONE = {
    "approve": "Approved; the node is drained, and then cut.",
    "decline": "Declined; the node stays as it is.",
    "abort": "Aborted; the node is brought back to what it was.",
}


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def cluster_gpus_page(request: HttpRequest, name: str) -> HttpResponse:
    """Ask the cluster now for its GPUs, and draw them as they are cut; one that is silent is drawn as it was."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    problem, cluster = "", cluster_get(name=name)
    try:
        gpus_ask(cluster=cluster, now=timezone.now())
    except FairleadError as error:
        problem = error.message
    page = gpu_page(name, problem)
    context = {**page.context, "cursor": page.cursor}
    if cluster.kind == LOCAL and not context["nodes"]:
        context["others"] = cluster_query().exclude(kind=LOCAL).order_by("name")[:_OTHERS_SHOWN]
    return render(request, page.template, context)


@require_POST
@page_scope(Scope.ADMIN)
def repartition_propose_action(request: HttpRequest, name: str) -> HttpResponse:
    """Propose the cut that makes room for slices; go back to the page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    cluster, asked = cluster_get(name=name), request.POST
    row = repartition_propose(
        cluster=cluster,
        order=RepartitionOrder((f"{asked.get('count', '')} x {asked.get('profile', '')}",)),
        nodes=cluster_nodes(cluster=cluster),
        actor=page_actor(request),
        now=timezone.now(),
    )
    messages.success(request, f"Proposed: {row.why}.")
    return leave(request, "deployments:cluster-gpus", name)


@require_POST
@page_scope(Scope.ADMIN)
def repartition_action(request: HttpRequest, name: str, repartition_id: int, verb: str) -> HttpResponse:
    """Approve, decline or abort a repartition; go back to the page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    said: dict[str, Any] = {
        "cluster": name,
        "repartition_id": repartition_id,
        "reason": request.POST.get("reason", ""),
        "actor": page_actor(request),
        "now": timezone.now(),
    }
    match verb:
        case "approve":
            repartition_approve(nodes=cluster_nodes(cluster=cluster_get(name=name)), **said)
        case "decline":
            repartition_decline(**said)
        case "abort":
            repartition_abort(**said)
        case _:
            raise NotFound(f"a repartition has no action {verb}")
    messages.success(request, _DONE[verb])
    return leave(request, "deployments:cluster-gpus", name)
