"""Build pages: the builds of a version, an order form, and the progress of each."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.auth.access import Place, may, require, visible
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from clusters.services.cluster_selection import cluster_default
from common.errors import InvalidInput
from common.http.error_pages import leave, newest
from deployments.services import gpus_of
from jobs.services import hints
from model_jobs import tasks
from model_jobs.builds.selectors import build_query
from model_jobs.builds.services import build_start, build_stop
from model_jobs.selectors import services_on_gpus
from model_jobs.web.forms import PLAN, build_order, has_calibration, profile_of, why_unbuilt
from model_jobs.web.pages import build_page, build_rows
from registry.domain.signature import parse
from registry.domain.version_lifecycle import Status
from registry.selectors import model_version_get

_SHOWN = 20


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.READ)
def build_list_page(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Show the builds of a version with an order form; on POST order a build and redirect to its page."""
    require(page_token(request), Scope.READ, Place.model(model))
    if request.method == "POST":
        return _start(request, model, number)
    version = model_version_get(model=model, number=number)
    rows, older = newest(request, build_query(model=model, number=number), _SHOWN)
    why = (
        why_unbuilt(version.platform) if version.status == Status.READY.value else f"it is {version.status}, not READY"
    )
    context: dict[str, Any] = {
        "version": version,
        "rows": build_rows(rows),
        "older": older,
        "may_write": may(page_token(request), Scope.WRITE, Place.model(model)),
        "why_not": why,
    }
    if not why:
        context |= _choices(request)
        context["has_calibration"] = has_calibration(version.source_name)
        context["profile"] = profile_of(parse(version.signature)) if version.signature else ""
    return render(request, "deployments/build_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def build_detail_page(request: HttpRequest, model: str, number: int, build_id: int) -> HttpResponse:
    """Show one build: its progress, and in the end the resulting version."""
    require(page_token(request), Scope.READ, Place.model(model))
    page = build_page(model, number, build_id)
    may_write = may(page_token(request), Scope.WRITE, Place.model(model))
    return render(request, page.template, {**page.context, "cursor": page.cursor, "may_write": may_write})


@require_POST
@page_scope(Scope.WRITE)
def build_stop_action(request: HttpRequest, model: str, number: int, build_id: int) -> HttpResponse:
    """Stop a running build."""
    require(page_token(request), Scope.WRITE, Place.model(model))
    now = timezone.now()
    build_stop(model=model, number=number, build_id=build_id, actor=page_actor(request), now=now)
    messages.success(request, f"Build {build_id} is stopped.")
    return leave(request, "deployments:build-detail", model, number, build_id)


def _start(request: HttpRequest, model: str, number: int) -> HttpResponse:
    require(page_token(request), Scope.WRITE, Place.model(model))
    said = request.POST.dict()
    kind, at = said.get("on", "").partition(" ")[::2]
    service = None
    if said.get("kind") == PLAN and kind == "service":
        namespace, _, name = at.partition("/")
        require(page_token(request), Scope.READ, Place.namespace(namespace))
        service, said = (namespace, name), {**said, "accelerator": ""}
    elif said.get("kind") == PLAN and kind == "resource" and not said.get("accelerator", "").strip():
        said = {**said, "accelerator": at}
    order = build_order(said)
    if said.get("kind") == PLAN and service is None and not order.accelerator:
        raise InvalidInput("a plan is built on the GPU or slice that it is to run on; name one", field="accelerator")
    now = timezone.now()
    row = build_start(model=model, number=number, service=service, order=order, actor=page_actor(request), now=now)
    hints.send(tasks.build, row.pk)
    return leave(request, "deployments:build-detail", model, number, row.pk)


def _choices(request: HttpRequest) -> dict[str, Any]:
    """Return the observed GPUs and slices on which a plan could be built."""
    cluster = cluster_default(now=timezone.now())
    only = visible(page_token(request), Owned.NAMESPACE, "service__namespace")
    nodes = gpus_of(cluster).nodes
    return {
        "cluster": cluster,
        "on_services": services_on_gpus(cluster_id=cluster.pk, only=only, limit=_SHOWN),
        "resources": sorted({resource for node in nodes for resource in node.resources}),
        "products": sorted({node.product for node in nodes}),
    }
