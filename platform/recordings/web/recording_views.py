"""Pages of recordings and replays: those of a service, with order forms, and the progress of each."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.auth.access import Place, may, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from clusters.services.connection import can_record
from common import durations
from common.http.error_pages import leave, newest
from deployments import selectors
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService
from deployments.selectors.permissions import require_model_use
from jobs.services import hints
from recordings import tasks
from recordings.selectors.recordings import recording_query, recording_running
from recordings.selectors.replays import replays_newest, replays_of
from recordings.services.recordings import (
    LONGEST,
    MAX_BYTES,
    MAX_REQUESTS,
    RecordingOrder,
    recording_delete,
    recording_start,
    recording_stop,
)
from recordings.services.replays import replay_start
from recordings.web.recording_form import recording_order, replay_terms_said
from recordings.web.recording_pages import recording_page, replay_page, request_log
from registry.domain.version_lifecycle import Status
from registry.models import WITHOUT_FILES
from registry.selectors import version_list

_SHOWN = 20
_VERSIONS_SHOWN = 50


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.READ)
def recording_list_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show a service's recordings and replays with an order form; on POST start a recording, redirect to its page."""
    if request.method == "POST":
        return _start(request, namespace, name)
    service = selectors.service_get(namespace=namespace, name=name)
    rows, older = newest(request, recording_query(service=service), _SHOWN)
    may_admin = may(page_token(request), Scope.ADMIN, Place.namespace(namespace))
    without = RecordingOrder("")
    context = {
        "service": service,
        "rows": rows,
        "older": older,
        "replays": replays_newest(service_id=service.pk, limit=_SHOWN),
        "may_admin": may_admin,
        "running": recording_running(service_id=service.pk),
        "can_record": can_record(service.cluster),
        "without": without,
        "without_mib": without.max_bytes >> 20,
        "without_retention": durations.render(without.retention),
        "most": {"requests": MAX_REQUESTS, "mib": MAX_BYTES >> 20, "days": LONGEST.days},
    }
    return render(request, "deployments/recording_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def recording_detail_page(request: HttpRequest, namespace: str, name: str, recording_id: int) -> HttpResponse:
    """Show one recording: its size, its newest requests, its replays and an order form for one."""
    page, token = recording_page(namespace, name, recording_id), page_token(request)
    recording, place = page.context["recording"], Place.namespace(namespace)
    context = {
        **page.context,
        "cursor": page.cursor,
        "may_admin": may(token, Scope.ADMIN, place),
        "may_write": may(token, Scope.WRITE, place),
        "log": request_log(recording),
        "replays": replays_of(recording_id=recording.pk, limit=_SHOWN),
        "versions": _versions(recording.service),
    }
    return render(request, page.template, context)


@require_POST
@page_scope(Scope.ADMIN)
def recording_stop_action(request: HttpRequest, namespace: str, name: str, recording_id: int) -> HttpResponse:
    """End a recording."""
    actor, now = page_actor(request), timezone.now()
    recording_stop(namespace=namespace, name=name, recording_id=recording_id, actor=actor, now=now)
    messages.success(request, f"Recording {recording_id} is stopped; its requests stay until they expire.")
    return leave(request, "deployments:recording-detail", namespace, name, recording_id)


@require_POST
@page_scope(Scope.ADMIN)
def recording_delete_action(request: HttpRequest, namespace: str, name: str, recording_id: int) -> HttpResponse:
    """Delete a recording with its content."""
    actor, now = page_actor(request), timezone.now()
    recording_delete(namespace=namespace, name=name, recording_id=recording_id, actor=actor, now=now)
    messages.success(request, f"Recording {recording_id} is deleted with everything in it.")
    return leave(request, "deployments:recording-list", namespace, name)


@require_POST
@page_scope(Scope.WRITE)
def replay_start_action(request: HttpRequest, namespace: str, name: str, recording_id: int) -> HttpResponse:
    """Order a replay of a recording with a version, and redirect to its page."""
    version = request.POST.get("version", "").strip()
    require_model_use(page_token(request), version)
    row = replay_start(
        namespace=namespace,
        name=name,
        recording=recording_id,
        version=version,
        terms=replay_terms_said(request.POST.dict()),
        actor=page_actor(request),
        now=timezone.now(),
    )
    hints.send(tasks.replay, row.pk)
    return leave(request, "deployments:replay-detail", namespace, name, row.pk)


@never_cache
@require_safe
@page_scope(Scope.READ)
def replay_detail_page(request: HttpRequest, namespace: str, name: str, replay_id: int) -> HttpResponse:
    """Show one replay: its progress, and in the end how the responses differ."""
    page = replay_page(namespace, name, replay_id)
    may_write = may(page_token(request), Scope.WRITE, Place.namespace(namespace))
    return render(request, page.template, {**page.context, "cursor": page.cursor, "may_write": may_write})


def _start(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    require(page_token(request), Scope.ADMIN, Place.namespace(namespace))
    row = recording_start(
        namespace=namespace,
        name=name,
        order=recording_order(request.POST.dict()),
        actor=page_actor(request),
        now=timezone.now(),
    )
    return leave(request, "deployments:recording-detail", namespace, name, row.pk)


def _versions(service: InferenceService) -> list[dict[str, Any]]:
    """Return the versions that can replay a recording, newest first."""
    stable = service.revisions.select_related("model_version__model").filter(role=Role.STABLE).first()
    if stable is None:
        return []
    live = stable.model_version
    ready = (
        version_list(model=live.model.name)
        .filter(status=Status.READY)
        .exclude(platform__in=WITHOUT_FILES)
        .order_by("-number")
    )
    numbers = ready.values_list("number", flat=True)[:_VERSIONS_SHOWN]
    return [{"number": number, "is_live": number == live.number} for number in numbers]
