"""Model import pages: order, progress, stop."""

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.http.error_pages import leave
from jobs.services import hints
from registry.services import imports
from registry.tasks import import_model


def allowed_places() -> list[str]:
    """Return the allowed prefixes of import URIs, for display; empty where importing is switched off."""
    return [prefix.shown for prefix in settings.IMPORT_FROM]


@require_POST
@page_scope(Scope.WRITE)
def import_start_action(request: HttpRequest) -> HttpResponse:
    """Order an import of files as a model's next version, and redirect to the model, which shows the progress."""
    name = request.POST.get("model", "").strip()
    require(page_token(request), Scope.WRITE, Place.model(name))
    row = imports.import_request(
        model=name,
        uri=request.POST.get("uri", "").strip(),
        sha256=request.POST.get("sha256", "").strip().lower(),
        now=timezone.now(),
        actor=page_actor(request),
    )
    transaction.on_commit(lambda: hints.send(import_model, row.pk))
    messages.success(request, f"A worker fetches {row.shown_uri} as the next version of {name}.")
    return leave(request, "registry:model-detail", name)


@require_POST
@page_scope(Scope.WRITE)
def import_stop_action(request: HttpRequest, name: str, import_id: int) -> HttpResponse:
    """Stop a running import."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    imports.import_stop(model=name, import_id=import_id, now=timezone.now(), actor=page_actor(request))
    return leave(request, "registry:model-detail", name)
