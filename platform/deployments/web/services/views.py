"""Service and rollout pages, and the actions of their buttons."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, is_administrator, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.errors import NotFound
from common.http.error_pages import is_fragment, leave
from deployments.models import Rollout
from deployments.selectors import rollout_namespace
from deployments.services import (
    rollout_abort,
    rollout_approve,
    rollout_promote,
    rollout_reject,
    rollout_retry,
    rollout_withdraw,
    service_delete,
    service_restart,
    service_resume,
    service_rollback,
    service_stop,
)
from deployments.web.pages import detail_page, list_page
from deployments.web.rollouts.page import rollout_page
from deployments.web.services.filter import parse_filter
from events.web.live_updates import whole_page

ROLLOUT_VERBS = {
    "promote": (rollout_promote, "Promoted; the rollout goes on."),
    "abort": (rollout_abort, "Aborted; all requests go back to the stable revision."),
    "retry": (rollout_retry, "Started again from the first step."),
}

APPROVAL_VERBS: Mapping[str, tuple[Callable[..., Rollout], str]] = {
    "approve": (rollout_approve, "Approved."),
    "withdraw": (rollout_withdraw, "Your approval is withdrawn."),
    "reject": (rollout_reject, "Rejected; all requests go back to the stable revision."),
}

SERVICE_VERBS: Mapping[str, tuple[Callable[..., object], str]] = {
    "restart": (service_restart, "The replicas of {} are restarted, one after the other."),
    "stop": (service_stop, "{} is stopped; its replicas finish what they have and end."),
    "resume": (service_resume, "{} is resumed, and serves as soon as its first replica is ready."),
    "delete": (service_delete, "{} is being drained: its replicas finish what they have, then it is gone."),
}


@never_cache
@require_safe
@page_scope(Scope.READ)
def service_list_page(request: HttpRequest) -> HttpResponse:
    """Show the services, or those of the address's filter."""
    return whole_page(request, list_page(page_token(request), parse_filter(request.GET.dict())), Place.anywhere())


@never_cache
@require_safe
@page_scope(Scope.READ)
def service_detail_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show one service with its rollout."""
    return whole_page(request, detail_page(namespace, name), Place.namespace(namespace))


@never_cache
@require_safe
@page_scope(Scope.READ)
def rollout_detail_page(request: HttpRequest, namespace: str, name: str, rollout_id: int) -> HttpResponse:
    """Show one rollout."""
    return whole_page(request, rollout_page(namespace, name, rollout_id), Place.namespace(namespace))


@require_POST
@page_scope(Scope.WRITE)
def rollout_action(request: HttpRequest, rollout_id: int, verb: str) -> HttpResponse:
    """Promote, abort or retry a rollout; answer htmx with the rollout's new state, others with the button's page."""
    if verb not in ROLLOUT_VERBS:
        raise NotFound(f"a rollout has no action {verb!r}; it has {', '.join(ROLLOUT_VERBS)}")
    act, done = ROLLOUT_VERBS[verb]
    require(request.token, Scope.WRITE, Place.namespace(rollout_namespace(rollout_id=rollout_id)))  # type: ignore[attr-defined]
    comment = request.POST.get("comment", "")
    rollout = act(rollout_id=rollout_id, actor=page_actor(request), now=timezone.now(), comment=comment)
    return _decided(request, rollout, done)


@require_POST
@page_scope(Scope.WRITE)
def rollout_approval_action(request: HttpRequest, rollout_id: int, verb: str) -> HttpResponse:
    """Approve, withdraw or reject; answer as `rollout_action` does."""
    if verb not in APPROVAL_VERBS:
        raise NotFound(f"approvals have no action {verb!r}; they have {', '.join(APPROVAL_VERBS)}")
    act, done = APPROVAL_VERBS[verb]
    token = page_token(request)
    require(token, Scope.WRITE, Place.namespace(rollout_namespace(rollout_id=rollout_id)))
    said = {} if verb == "withdraw" else {"comment": request.POST.get("comment", "")}
    rollout = act(rollout_id=rollout_id, approver=token.approver, actor=page_actor(request), now=timezone.now(), **said)
    return _decided(request, rollout, done)


@require_POST
@page_scope(Scope.WRITE)
def service_rollback_action(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Roll back to an earlier revision; answer htmx with the rollout that does it, others with the service's page."""
    revision = request.POST.get("revision", "")
    actor = request.actor  # type: ignore[attr-defined]
    may_grant = is_administrator(page_token(request))
    arguments: dict[str, Any] = {"revision": revision, "actor": actor, "may_grant_egress": may_grant}
    service_rollback(namespace=namespace, name=name, now=timezone.now(), **arguments)
    return _done(request, namespace, name, f"Going back to {revision}.")


@require_POST
@page_scope(Scope.WRITE)
def service_action(request: HttpRequest, namespace: str, name: str, verb: str) -> HttpResponse:
    """Restart, stop, resume or delete a service, and redirect to its page; after a deletion to the list."""
    if verb not in SERVICE_VERBS:
        raise NotFound(f"a service has no action {verb!r}; it has {', '.join(SERVICE_VERBS)}")
    act, done = SERVICE_VERBS[verb]
    act(namespace=namespace, name=name, actor=page_actor(request), now=timezone.now())
    messages.success(request, done.format(f"{namespace}/{name}"))
    if verb == "delete":
        return leave(request, "deployments:service-list")
    return leave(request, "deployments:service-detail", namespace, name)


def _decided(request: HttpRequest, rollout: Rollout, what: str) -> HttpResponse:
    """Answer for the page of the form: the rollout's, whose other parts its stream updates, or the service's."""
    namespace, name = rollout.service.namespace, rollout.service.name
    if request.POST.get("on") != "rollout":
        return _done(request, namespace, name, what)
    if is_fragment(request):
        viewing = {"may_write": True, "viewer": page_token(request).approver}
        context = {**rollout_page(namespace, name, rollout.pk).context, **viewing}
        return render(request, "deployments/_rollout_header.html", context)
    messages.success(request, what)
    return redirect("deployments:rollout-detail", namespace, name, rollout.pk)


def _done(request: HttpRequest, namespace: str, name: str, what: str) -> HttpResponse:
    """Answer htmx with the rollout's new state, others with the service's page."""
    if is_fragment(request):
        page = detail_page(namespace, name)
        viewing = {"may_write": True, "viewer": page_token(request).approver}
        return render(request, "deployments/_rollout.html", {**page.context, **viewing})
    messages.success(request, what)
    return redirect("deployments:service-detail", namespace, name)
