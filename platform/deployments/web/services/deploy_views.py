"""Deployment page of a version: the preview and the start of a rollout, and new services."""

from functools import partial
from typing import Any

from django.db.models import OuterRef, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, may_names, require, visible
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from clusters.services.cluster_selection import cluster_of
from clusters.services.connection import driver_of
from common.errors import FairleadError, InvalidInput
from common.http.error_pages import leave
from deployments import selectors, services
from deployments.domain.service_file.file import LONGEST_NAME
from deployments.domain.service_file.model import format_of
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from deployments.services.current_load import look, survey
from deployments.services.files.file_preflight import service_planned
from deployments.web.rollouts.contract_changes import accepted_by_form, may_accept, planned_with_breaks
from deployments.web.services.name_suggestion import first_free, names_for
from registry.models import ModelVersion
from registry.selectors import model_version_get
from registry.services.images import check_has_files

_SERVICES_SHOWN = 50
_NAMESPACE = "default"


@never_cache
@require_safe
@page_scope(Scope.WRITE)
def deploy_page(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Show the services that could get a version, and the effect in the one of the address."""
    require(page_token(request), Scope.READ, Place.model(model))
    version = model_version_get(model=model, number=number)
    check_has_files(version)
    asked = {name: request.GET.get(name, "").strip() for name in ("service", "policy")}
    context: dict[str, Any] = {
        "version": version,
        "asked": asked,
        "services": _services_of(request, version),
        "namespace": _NAMESPACE,
        "suggested": _suggested(model),
        "longest_name": LONGEST_NAME,
        "policies": selectors.policy_query().order_by("name").values_list("name", flat=True)[:_SERVICES_SHOWN],
    }
    if asked["service"]:
        context |= _foreseen(request, version, *_named(asked["service"]), policy=asked["policy"])
    return render(request, "deployments/deploy.html", context)


@require_POST
@page_scope(Scope.WRITE)
def deploy_action(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Start the previewed rollout, and redirect to it."""
    namespace, name = _named(request.POST.get("service", ""))
    _require(request, model, namespace)
    accept = accepted_by_form(request, namespace)
    arguments = _arguments(request, number, namespace, name, request.POST.get("policy", ""))
    planned = services.rollout_plan(**arguments, accept=accept)
    services.plan_check(planned.plan, driver_of(_cluster(namespace, name)))
    rollout = planned.carry_out()
    return leave(request, "deployments:rollout-detail", namespace, name, rollout.pk)


@require_POST
@page_scope(Scope.WRITE)
def service_create_action(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Create a service of the version, and redirect to it."""
    said = {name: request.POST.get(name, "").strip() for name in ("namespace", "name", "policy", "replicas")}
    _require(request, model, said["namespace"])
    if InferenceService.objects.filter(namespace=said["namespace"], name=said["name"]).exists():
        raise InvalidInput(
            f"service {said['namespace']}/{said['name']} is there already; roll the version out to it", field="name"
        )
    document = _document(model_version_get(model=model, number=number), **said)
    arguments: dict[str, Any] = {"document": document, "namespace": said["namespace"], "name": said["name"]}
    arguments |= {"actor": page_actor(request), "now": timezone.now()}
    service_planned(page_token(request), **arguments).carry_out()
    return leave(request, "deployments:service-detail", said["namespace"], said["name"])


def _services_of(request: HttpRequest, version: ModelVersion) -> list[InferenceService]:
    """Return the services of the version's model that the caller may change, the newest first.

    Each has `live_number`, the number of the version that serves its requests; the file may name another.
    """
    token = page_token(request)
    stable = Revision.objects.filter(service=OuterRef("pk"), role=Role.STABLE)
    rows = InferenceService.objects.filter(model_version__model=version.model_id, deleting_at=None)
    rows = rows.annotate(live_number=Subquery(stable.values("model_version__number")[:1]))
    seen = rows.filter(visible(token, Owned.NAMESPACE, "namespace")).select_related("policy")
    found = list(seen.order_by("-pk")[:_SERVICES_SHOWN])
    writable = may_names(token, Scope.WRITE, Owned.NAMESPACE, {row.namespace for row in found})
    return [row for row in found if row.namespace in writable]


def _suggested(model: str) -> str:
    """Return a free name for a new service of the model in the namespace that the form proposes."""
    names = names_for(model)
    taken = InferenceService.objects.filter(namespace=_NAMESPACE, name__in=names).values_list("name", flat=True)
    return first_free(names, set(taken))


def _foreseen(request: HttpRequest, version: ModelVersion, namespace: str, name: str, *, policy: str) -> dict[str, Any]:
    """Return the plan of a rollout to the version; or its refusal, and whether the caller may accept that."""
    _require(request, version.model.name, namespace)
    arguments = _arguments(request, version.number, namespace, name, policy)
    now = arguments["now"]
    try:
        plan, breaks = planned_with_breaks(
            lambda accept: (
                services.rollout_plan(
                    **arguments,
                    accept=accept,
                    look=partial(look, now),
                    survey=partial(survey, now),
                ).plan
            )
        )
        services.plan_check(plan, driver_of(_cluster(namespace, name)))
    except FairleadError as error:
        return {"refused": error.message}
    return {"plan": plan, "breaks": breaks, "may_accept": may_accept(request, namespace)}


def _arguments(request: HttpRequest, number: int, namespace: str, name: str, policy: str) -> dict[str, Any]:
    return {
        "namespace": namespace,
        "name": name,
        "version": str(number),
        "policy": policy.strip() or None,
        "actor": page_actor(request),
        "now": timezone.now(),
    }


def _require(request: HttpRequest, model: str, namespace: str) -> None:
    require(page_token(request), Scope.READ, Place.model(model))
    require(page_token(request), Scope.WRITE, Place.namespace(namespace))


def _cluster(namespace: str, name: str) -> Any:
    return cluster_of(namespace=namespace, name=name)


def _named(text: str) -> tuple[str, str]:
    namespace, sign, name = text.strip().partition("/")
    if not (namespace and sign and name):
        raise InvalidInput(f"service is {text[:130]!r}; expected NAMESPACE/NAME", field="service")
    return namespace, name


def _document(version: ModelVersion, *, namespace: str, name: str, policy: str, replicas: str) -> dict[str, Any]:
    """Return the service file of a new service."""
    if not (replicas.isascii() and replicas.isdecimal()):
        raise InvalidInput(f"replicas is {replicas[:20]!r}; expected a whole number", field="replicas")
    model = {"modelFormat": {"name": format_of(version.platform)}, "storageUri": version.uri}
    spec: dict[str, Any] = {"predictor": {"minReplicas": int(replicas), "model": model}}
    if policy:
        spec["rollout"] = {"policy": policy}
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
