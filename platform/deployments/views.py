"""The pages of services and what their buttons do."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.access import Place, may, require
from accounts.permissions import page_scope
from accounts.scopes import Scope
from common.errors import NotFound
from common.pages import is_fragment
from deployments.pages import Page, detail_page, list_page
from deployments.selectors import rollout_namespace
from deployments.services import rollout_abort, rollout_promote, rollout_retry, service_rollback

ROLLOUT_VERBS = {
    "promote": (rollout_promote, "Promoted; the rollout goes on."),
    "abort": (rollout_abort, "Aborted; all requests go back to the stable revision."),
    "retry": (rollout_retry, "Started again from the first step."),
}


@require_safe
def home(_request: HttpRequest) -> HttpResponse:
    """Go to the services."""
    return redirect("deployments:service-list")


@never_cache
@require_safe
@page_scope(Scope.READ)
def service_list_page(request: HttpRequest) -> HttpResponse:
    """Show all services."""
    return _whole(request, list_page(request.token), Place.anywhere())  # type: ignore[attr-defined]


@never_cache
@require_safe
@page_scope(Scope.READ)
def service_detail_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show one service with its rollout."""
    return _whole(request, detail_page(namespace, name), Place.namespace(namespace))


@require_POST
@page_scope(Scope.WRITE)
def rollout_action(request: HttpRequest, rollout_id: int, verb: str) -> HttpResponse:
    """Promote, abort or retry a rollout; answer htmx with the rollout as it is now, others with the service's page."""
    if verb not in ROLLOUT_VERBS:
        raise NotFound(f"a rollout has no action {verb!r}; it has {', '.join(ROLLOUT_VERBS)}")
    act, done = ROLLOUT_VERBS[verb]
    require(request.token, Scope.WRITE, Place.namespace(rollout_namespace(rollout_id=rollout_id)))  # type: ignore[attr-defined]
    service = act(rollout_id=rollout_id, actor=request.actor, now=timezone.now()).service  # type: ignore[attr-defined]
    if is_fragment(request):
        page = detail_page(service.namespace, service.name)
        return render(request, "deployments/_rollout.html", {**page.context, "may_write": True})
    messages.success(request, done)
    return redirect("deployments:service-detail", service.namespace, service.name)


@require_POST
@page_scope(Scope.WRITE)
def service_rollback_action(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Go back to an earlier revision; answer htmx with the rollout that does it, others with the service's page."""
    revision = request.POST.get("revision", "")
    actor = request.actor  # type: ignore[attr-defined]
    service_rollback(namespace=namespace, name=name, revision=revision, actor=actor, now=timezone.now())
    if is_fragment(request):
        page = detail_page(namespace, name)
        return render(request, "deployments/_rollout.html", {**page.context, "may_write": True})
    messages.success(request, f"Going back to {revision}.")
    return redirect("deployments:service-detail", namespace, name)


def _whole(request: HttpRequest, page: Page, place: Place) -> HttpResponse:
    may_write = may(request.token, Scope.WRITE, place)  # type: ignore[attr-defined]
    return render(request, page.template, {**page.context, "cursor": page.cursor, "may_write": may_write})
