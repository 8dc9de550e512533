"""Log page of a replica: its last lines."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.auth.permissions import page_scope
from accounts.domain.scopes import Scope
from clusters.services.connection import driver_now
from common.http.error_pages import is_fragment
from deployments.selectors import service_get


@never_cache
@require_safe
@page_scope(Scope.READ)
def replica_log_page(request: HttpRequest, namespace: str, name: str, replica: str) -> HttpResponse:
    """Show the last lines of a replica, on a page of its own; htmx gets only them."""
    service = service_get(namespace=namespace, name=name)
    lines = driver_now(service.cluster, timezone.now()).log(namespace, name, replica)
    context = {"service": service, "replica": replica, "lines": lines}
    template = "deployments/_replica_log.html" if is_fragment(request) else "deployments/replica_log.html"
    return render(request, template, context)
