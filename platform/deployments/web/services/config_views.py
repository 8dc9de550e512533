"""Configuration page of a service: its file as a form or as YAML, with a preview before it is applied."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, is_administrator, may
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.errors import Conflict, FairleadError
from common.files.editor.form import changed, filled
from common.files.editor.text import document_of, text_of
from common.http.error_pages import is_fragment, leave
from deployments.models import InferenceService
from deployments.selectors import policy_query, service_get
from deployments.selectors.permissions import has_container
from deployments.services.files.file_preflight import service_planned
from deployments.web.rollouts.contract_changes import accepted_by_form
from deployments.web.services.config_preview import digest_of, looked_at
from deployments.web.services.form import fields_of

PAGE = "deployments/service_config.html"


@never_cache
@require_safe
@page_scope(Scope.READ)
def service_config_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show a service's file as a form and as YAML."""
    service = service_get(namespace=namespace, name=name)
    return render(request, PAGE, _context(request, service, service.document))


@require_POST
@page_scope(Scope.WRITE)
def service_config_look(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show the changes of the form, or of the text, and their effects; htmx gets only that."""
    service = service_get(namespace=namespace, name=name)
    context = _context(request, service, service.document)
    try:
        if "text" in request.POST:
            context["text"] = request.POST["text"]
            document = dict(document_of(request.POST["text"]))
        else:
            document = changed(service.document, context["fields"], request.POST.dict())
            context |= {"filled": filled(document, context["fields"]), "text": text_of(document)}
    except FairleadError as error:
        context |= {"refusal": error.message, "further": error.further}
    else:
        context |= looked_at(request, service, document)
    return render(request, "deployments/_config_plan.html" if is_fragment(request) else PAGE, context)


@require_POST
@page_scope(Scope.WRITE)
def service_config_apply(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Apply the previewed file, unless another was applied meanwhile, and redirect to the service's page."""
    service = service_get(namespace=namespace, name=name)
    accept = accepted_by_form(request, namespace)
    if request.POST.get("was") != digest_of(service):
        raise Conflict(f"the file of {service} was changed since you looked; look at your change again")
    document = document_of(request.POST.get("document", ""))  # JSON is YAML
    arguments: dict[str, Any] = {"document": document, "namespace": namespace, "name": name, "now": timezone.now()}
    arguments |= {"actor": page_actor(request), "accept": accept}
    arguments |= {"may_grant_egress": is_administrator(page_token(request))}
    service_planned(page_token(request), **arguments).carry_out()
    messages.success(request, f"Applied the file of {service}.")
    return leave(request, "deployments:service-detail", namespace, name)


def _context(request: HttpRequest, service: InferenceService, document: dict[str, Any]) -> dict[str, Any]:
    policies = tuple(policy_query().order_by("name").values_list("name", flat=True))
    fields = fields_of(policies, is_custom=has_container(document))
    return {
        "service": service,
        "fields": fields,
        "filled": filled(document, fields),
        "text": text_of(document),
        "may_write": may(page_token(request), Scope.WRITE, Place.namespace(service.namespace)),
    }
