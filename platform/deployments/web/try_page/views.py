"""Try-out page of a version: a form from its signature, a service's answer, and client code for the request.

The control plane sends requests only to services that serve the version now and that the viewer may change, at their
own addresses, and stores nothing of them.
"""

import json
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, may, may_names, require, seen_names
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from common.errors import Conflict, FairleadError, NotFound
from common.http.error_pages import is_fragment
from deployments import hooks
from deployments.selectors.services import authority_of
from deployments.selectors.trying import Reach, reaches_of, stopped_service
from deployments.web.try_page import Code, Field, Request, code_of, fields_of, request_of, shown
from integrations.clusters.local.agent.gateway.envoy_admin import socket_of_gateway
from integrations.v2 import inference, tensors
from registry.domain.signature import parse
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion
from registry.selectors import model_version_get
from registry.services.images import check_has_files
from registry.storage import labels_of

_RUNTIME_SAID_CHARACTERS = 2000


@never_cache
@require_safe
@page_scope(Scope.READ)
def try_page(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Show the form with an example in it, and the code that sends that."""
    context = form_context(request, model, number, request.GET.get("service", ""))
    if context["fields"]:
        context["code"] = code(request_of(context["fields"], {}), context["reach"], context["version"])
    return render(request, "deployments/try.html", context)


@never_cache
@require_POST
@page_scope(Scope.WRITE)
def try_send_action(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Send the form's request to the chosen service, and show the answer and its latency."""
    context = form_context(request, model, number, request.POST.get("service", ""))
    reach: Reach | None = context["reach"]
    if reach is None:
        raise NotFound(f"no service that you may see serves model {model!r} version {number}; deploy it first")
    require(page_token(request), Scope.WRITE, Place.namespace(reach.namespace))
    said = request.POST.dict()
    try:
        body = checked(context["fields"], said)
        context["code"] = code(body, reach, context["version"])
        context |= _asked(body, reach, context["version"])
    except FairleadError as error:
        context["problem"] = error.message
    context |= {"said": said, "is_sent": True}
    template = "deployments/_try_outcome.html" if is_fragment(request) else "deployments/try.html"
    return render(request, template, context)


@never_cache
@require_POST
@page_scope(Scope.READ)
def try_request_file(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Return the form's request, as the file that the code reads."""
    context = form_context(request, model, number, "")
    text = json.dumps(checked(context["fields"], request.POST.dict()), ensure_ascii=False)
    headers = {"Content-Disposition": 'attachment; filename="request.json"'}
    return HttpResponse(text, content_type="application/json", headers=headers)


def form_context(request: HttpRequest, model: str, number: int, wanted: str) -> dict[str, Any]:
    """Return the version, its form, and the services to choose from with the requested one, else the first."""
    token = page_token(request)
    require(token, Scope.READ, Place.model(model))
    version = model_version_get(model=model, number=number)
    check_has_files(version)
    reaches = reaches_of(version=version)
    namespaces = {reach.namespace for reach in reaches}
    seen = seen_names(token, Owned.NAMESPACE, namespaces)
    writable = may_names(token, Scope.WRITE, Owned.NAMESPACE, namespaces)
    reaches = [reach for reach in reaches if reach.namespace in seen]
    reach = next((each for each in reaches if str(each) == wanted), None)
    if wanted and reach is None:
        raise _missing(token, version, wanted)
    first = next((each for each in reaches if each.namespace in writable), next(iter(reaches), None))
    chosen = reach or first
    return {
        "version": version,
        "fields": fields_of(parse(version.signature)) if version.signature else (),
        "reaches": reaches,
        "reach": chosen,
        "writable": writable,
        "may_send": chosen is not None and chosen.namespace in writable,
        "may_deploy": token.allows(Scope.WRITE),
        "may_try": version.status == Status.READY and may(token, Scope.WRITE, Place.model(model)),
        "within_s": settings.TRY_TIMEOUT_S,
        "said": {},
    }


def _token(reach: Reach) -> str:
    """Return the control plane's token for the service; empty where anybody may call it."""
    return next(iter(hooks.call_token(str(reach), timezone.now())), "") if reach.is_guarded else ""


def _missing(token: ApiToken, version: ModelVersion, wanted: str) -> FairleadError:
    """Return why the requested service cannot be chosen."""
    namespace, _, name = wanted.partition("/")
    if seen_names(token, Owned.NAMESPACE, {namespace}):
        service = stopped_service(version=version, namespace=namespace, name=name)
        if service is not None:
            return Conflict(f"service {service} is stopped, so it answers nothing; resume it on its page, then try it")
    return NotFound(f"there is no service {wanted[:130]!r} that you may see and that serves {version}")


def checked(fields: tuple[Field, ...], said: Mapping[str, str]) -> Request:
    """Return the form's request; raises InvalidInput where V2 has no such tensors."""
    made = request_of(fields, said)
    tensors.inputs_of(made)
    return made


def code(made: Request, reach: Reach | None, version: ModelVersion) -> Code:
    name = version.model.name if reach is None else reach.name
    url = f"{settings.GATEWAY_URL}/serving/NAMESPACE/{name}/v2/models/{name}" if reach is None else reach.url
    return code_of(
        made,
        url=url,
        model=name,
        version=version.number,
        is_guarded=reach is not None and reach.is_guarded,
        authority=authority_of(url),
    )


def _asked(made: Request, reach: Reach, version: ModelVersion) -> dict[str, Any]:
    """Return the service's answer, as the page shows it."""
    body = json.dumps(made, ensure_ascii=False, allow_nan=False).encode()
    answer = inference.infer(
        f"{reach.url}/versions/{version.number}/infer",
        body,
        within_s=settings.TRY_TIMEOUT_S,
        token=_token(reach),
        socket=socket_of_gateway(settings.HOME) if reach.is_local else None,
    )
    found: dict[str, Any] = {"took_ms": answer.took_ms, "revision": answer.revision, "status": answer.status}
    if answer.status != 200:
        return found | {"problem": _runtime_said(answer.status, answer.body)}
    return found | {"outputs": shown(tensors.outputs_of(answer.body), labels_of(version))}


def _runtime_said(status: int, body: bytes) -> str:
    """Return the sentence of a refusal, in the refuser's words."""
    text = body.decode("utf-8", "replace")
    try:
        fields = json.loads(text)
        reported = fields["error"] if isinstance(fields, dict) and "error" in fields else text
    except ValueError:
        reported = text
    words = str(reported).strip()[:_RUNTIME_SAID_CHARACTERS]
    return f"the service answered {status}: {words or 'nothing more'}"
