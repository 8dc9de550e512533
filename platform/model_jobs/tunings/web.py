"""Tuning pages: the tunings of a version, an order form, the progress of each, and the change it proposes."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.auth.access import Place, may, may_names, require, seen_names
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from clusters.services.cluster_selection import cluster_default
from common.errors import FairleadError, InvalidInput
from common.http.error_pages import is_fragment, leave, newest
from deployments.selectors import service_get
from deployments.selectors.trying import reaches_of
from deployments.web.services.config_preview import looked_at
from jobs.services import hints
from model_jobs import tasks
from model_jobs.tunings.selectors import tuning_get, tuning_query
from model_jobs.tunings.services import tuned_file, tuning_start, tuning_stop
from model_jobs.web.forms import NUMBERS, shapes_of, tuning_order
from model_jobs.web.pages import tuning_page, tuning_rows
from registry.domain.signature import parse
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion
from registry.selectors import model_version_get

_SHOWN = 20


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.READ)
def tuning_list_page(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Show the tunings of a version with an order form; on POST order one and redirect to its page."""
    require(page_token(request), Scope.READ, Place.model(model))
    version = model_version_get(model=model, number=number)
    shapes = shapes_of(parse(version.signature)) if version.signature else ()
    if request.method == "POST":
        return _start(request, version, shapes)
    rows, older = newest(request, tuning_query(model=model, number=number).defer("plot"), _SHOWN)
    reaches = reaches_of(version=version)
    seen = seen_names(page_token(request), Owned.NAMESPACE, {reach.namespace for reach in reaches})
    context = {
        "version": version,
        "rows": tuning_rows(rows),
        "older": older,
        "may_write": may(page_token(request), Scope.WRITE, Place.model(model)),
        "is_ready": version.status == Status.READY.value,
        "cluster": cluster_default(now=timezone.now()),
        "services": [reach for reach in reaches if reach.namespace in seen],
        "asked": request.GET.get("service", ""),
        "numbers": NUMBERS,
        "shapes": shapes,
    }
    return render(request, "deployments/tuning_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def tuning_detail_page(request: HttpRequest, model: str, number: int, tuning_id: int) -> HttpResponse:
    """Show one tuning: its progress, and in the end the measurements and the chosen setting."""
    require(page_token(request), Scope.READ, Place.model(model))
    return _detail(request, model, number, tuning_id)


@require_POST
@page_scope(Scope.WRITE)
def tuning_stop_action(request: HttpRequest, model: str, number: int, tuning_id: int) -> HttpResponse:
    """Stop a running tuning."""
    require(page_token(request), Scope.WRITE, Place.model(model))
    now = timezone.now()
    tuning_stop(model=model, number=number, tuning_id=tuning_id, actor=page_actor(request), now=now)
    messages.success(request, f"Tuning {tuning_id} is stopped.")
    return leave(request, "deployments:tuning-detail", model, number, tuning_id)


@require_POST
@page_scope(Scope.WRITE)
def tuning_look_action(request: HttpRequest, model: str, number: int, tuning_id: int) -> HttpResponse:
    """Show a service's file with the chosen configuration, and its effects; it is applied like any change of it."""
    require(page_token(request), Scope.READ, Place.model(model))
    namespace, slash, name = request.POST.get("service", "").partition("/")
    if not (namespace and slash and name):
        raise InvalidInput("service is missing; choose the one to configure", field="service")
    require(page_token(request), Scope.WRITE, Place.namespace(namespace))
    service = service_get(namespace=namespace, name=name)
    row = tuning_get(model=model, number=number, tuning_id=tuning_id)
    context: dict[str, Any] = {"service": service}
    try:
        document = tuned_file(row=row, service=(namespace, name))
    except FairleadError as error:
        context["refusal"] = error.message
    else:
        context |= looked_at(request, service, document)
    if is_fragment(request):
        return render(request, "deployments/_config_plan.html", context)
    return _detail(request, model, number, tuning_id, **context)


def _start(request: HttpRequest, version: ModelVersion, shapes: Any) -> HttpResponse:
    model = version.model.name
    require(page_token(request), Scope.WRITE, Place.model(model))
    service = None
    if said := request.POST.get("service", ""):
        namespace, _, name = said.partition("/")
        require(page_token(request), Scope.WRITE, Place.namespace(namespace))
        service = namespace, name
    row = tuning_start(
        model=model,
        number=version.number,
        service=service,
        order=tuning_order(request.POST.dict(), shapes),
        actor=page_actor(request),
        now=timezone.now(),
    )
    hints.send(tasks.tune, row.pk)
    return leave(request, "deployments:tuning-detail", model, version.number, row.pk)


def _detail(request: HttpRequest, model: str, number: int, tuning_id: int, **more: Any) -> HttpResponse:
    token = page_token(request)
    page = tuning_page(model, number, tuning_id)
    users = page.context["users"]
    writable = may_names(token, Scope.WRITE, Owned.NAMESPACE, {user.namespace for user in users})
    context = {
        **page.context,
        "cursor": page.cursor,
        "may_write": may(token, Scope.WRITE, Place.model(model)),
        "usable": [user for user in users if user.namespace in writable],
        **more,
    }
    return render(request, page.template, context)
