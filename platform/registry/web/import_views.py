"""Models that are imported from where they are: asked for on pages, seen to come in, stopped."""

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
    """Return the prefixes that models may be imported from, for people; empty where importing is switched off."""
    return [prefix.shown for prefix in settings.IMPORT_FROM]


@require_POST
@page_scope(Scope.WRITE)
def import_start_action(request: HttpRequest) -> HttpResponse:
    """Have files imported as a model's next version, and go to the model, which shows how they come in."""
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
    """Stop an import that goes on."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    imports.import_stop(model=name, import_id=import_id, now=timezone.now(), actor=page_actor(request))
    return leave(request, "registry:model-detail", name)
