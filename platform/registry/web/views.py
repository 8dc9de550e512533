"""Pages of models and versions: descriptions, tags, lineage, and running imports."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, is_administrator, may, permitted, require, seen_names, visible
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from common.errors import InvalidInput
from common.http.error_pages import is_fragment, leave, newest
from jobs.services import hints
from registry import hooks, selectors, services
from registry.domain.approval import Approval
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.lineage import Lineage, unset
from registry.domain.version_lifecycle import Status
from registry.hooks import Use
from registry.models import RegisteredModel
from registry.selectors.filters import OF_MODELS, OF_VERSIONS
from registry.selectors.kept_rules import kept_rules_list
from registry.services import annotations
from registry.services.annotations import Changes
from registry.services.version_checks import check_again
from registry.storage import store
from registry.tasks import check_version
from registry.web.import_views import allowed_places
from registry.web.latency_plot import drawing, measured
from serving_runtime.shared.model_files import ACCEPTED

_IMPORTS_SHOWN = 5
_OTHERS_SHOWN = 50
_WORKS_SHOWN = 4
_USES_SHOWN = 20
_KEPT_SHOWN = 50


@never_cache
@require_safe
@page_scope(Scope.READ)
def model_list_page(request: HttpRequest) -> HttpResponse:
    """Show the models that the caller may see, newest first, filtered by the form; to htmx, only the list.

    Admins also see the rules that deleted models left.
    """
    asked = {one.name: request.GET.get(one.name, "").strip() for one in OF_MODELS}
    conditions = [one.condition(asked[one.name]) for one in OF_MODELS if asked[one.name]]
    seen = selectors.model_overview().filter(visible(page_token(request), Owned.MODEL, "name"))
    rows, older = newest(request, seen.filter(*conditions))
    context = {
        "models": rows,
        "older": older,
        "coming": selectors.models_coming().filter(visible(page_token(request), Owned.MODEL, "model"))[:_IMPORTS_SHOWN],
        "asked": asked,
        "is_narrowed": any(asked.values()),
        "may_write": may(page_token(request), Scope.WRITE, Place.anywhere()),
        **_limits(),
    }
    if is_fragment(request):
        return render(request, "registry/_models.html", context)
    token = page_token(request)
    if may(token, Scope.ADMIN, Place.anywhere()):
        kept = kept_rules_list(only=permitted(token, Scope.ADMIN, Owned.MODEL, "name"))
        context["kept_rules"] = kept.order_by("name")[:_KEPT_SHOWN]
        context["is_administrator"] = is_administrator(token)
    return render(request, "registry/model_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def model_detail_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one model with its versions, filtered by the form, and imports; to htmx, only the requested part.

    A model whose first import is running, or ended recently, is shown too.
    """
    require(page_token(request), Scope.READ, Place.model(name))
    if request.headers.get("HX-Target") == "versions":
        return render(request, "registry/_versions.html", _versions(request, selectors.model_get(name=name)))
    found = list(selectors.import_list(model=name).order_by("-pk")[:_IMPORTS_SHOWN])
    context: dict[str, Any] = {
        "name": name,
        "imports": found,
        "are_coming": any(row.status == ImportStatus.PENDING.value for row in found),
        "may_write": may(page_token(request), Scope.WRITE, Place.model(name)),
        **_limits(),
    }
    if request.headers.get("HX-Target") == "imports":
        if context["are_coming"]:
            return render(request, "registry/_imports.html", context)
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})  # with the resulting version, or the failure
    if found and not selectors.model_exists(name=name):
        return render(request, "registry/model_coming.html", context)
    model = context["model"] = selectors.model_get(name=name)
    context["is_admin"] = may(page_token(request), Scope.ADMIN, Place.model(name))
    context["may_delete"] = context["may_write"] and (context["is_admin"] or not model.rules)
    pointing = {alias.name: alias.version.number for alias in model.aliases.all()}
    context["protected"] = [(alias, pointing.get(alias)) for alias in model.protected_aliases]
    return render(request, "registry/model_detail.html", context | _versions(request, model))


def _versions(request: HttpRequest, model: RegisteredModel) -> dict[str, Any]:
    """Return the rows of a model's version list, newest first."""
    asked = {one.name: request.GET.get(one.name, "").strip() for one in OF_VERSIONS}
    conditions = [one.condition(asked[one.name]) for one in OF_VERSIONS if asked[one.name]]
    versions, older = newest(request, selectors.version_list(model=model.name).filter(*conditions))
    live = _live(request, [version.pk for version in versions])
    return {
        "model": model,
        "rows": [(version, live.get(version.pk, ())) for version in versions],
        "older": older,
        "asked": asked,
        "is_narrowed": any(asked.values()),
        "statuses": list(Status),
        "approvals": list(Approval),
    }


@never_cache
@require_safe
@page_scope(Scope.READ)
def version_detail_page(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Show one version: its signature, lineage and metadata.

    htmx polls while the version is checked, and gets the progress; once it is over, the whole page is reloaded.
    """
    require(page_token(request), Scope.READ, Place.model(name))
    version = selectors.model_version_get(model=name, number=number)
    if is_fragment(request):
        if version.status != Status.PENDING.value:
            return HttpResponse(status=204, headers={"HX-Refresh": "true"})
        return render(request, "registry/_validation.html", {"version": version})
    uses = hooks.uses_of([version.pk])
    seen = seen_names(page_token(request), Owned.NAMESPACE, [use.namespace for use in uses])
    reported = [use for use in uses if use.namespace in seen]
    lineage = {**Lineage().as_json(), **version.lineage}
    context = {
        "version": version,
        "lineage": lineage,
        "unset": unset(lineage),
        "measured": measured(version.profile),
        "drawing": drawing([(f"version {number}", measured(version.profile))]),
        "others": selectors.version_list(model=name).exclude(pk=version.pk).order_by("-pk")[:_OTHERS_SHOWN],
        "uses": reported[:_USES_SHOWN],
        "more_uses": max(0, len(reported) - _USES_SHOWN),
        "may_deploy": may(page_token(request), Scope.WRITE, Place.anywhere()),
        "works": hooks.works_of(version.pk, _WORKS_SHOWN),
        "is_admin": may(page_token(request), Scope.ADMIN, Place.model(name)),
        "may_not_decide": selectors.decision_refusal(model=name, approver=page_token(request).approver),
        "may_not_approve": selectors.approval_refusal(version=version, approver=page_token(request).approver),
        "is_used_elsewhere": any(use.namespace not in seen for use in uses),
        "may_write": may(page_token(request), Scope.WRITE, Place.model(name)),
    }
    return render(request, "registry/version_detail.html", context)


def _limits() -> dict[str, Any]:
    """Return the limits of an upload."""
    limits = store()
    return {
        "max_bytes": limits.max_bytes,
        "max_files": limits.max_files,
        "accepted": ACCEPTED,
        "places": allowed_places(),
    }


def _live(request: HttpRequest, version_ids: list[int]) -> dict[int, list[Use]]:
    """Return, by version, where it is live, of the places that the caller may see."""
    uses = [use for use in hooks.uses_of(version_ids) if use.live_as]
    seen = seen_names(page_token(request), Owned.NAMESPACE, [use.namespace for use in uses])
    found: dict[int, list[Use]] = {}
    for use in uses:
        if use.namespace in seen:
            found.setdefault(use.version_id, []).append(use)
    return found


@require_POST
@page_scope(Scope.WRITE)
def tag_action(request: HttpRequest, name: str, number: int | None = None) -> HttpResponse:
    """Set or remove a tag of a model or version, by the form; redirect to the page."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    key = request.POST.get("key", "").strip()
    if not key:
        raise InvalidInput("key is missing; give the tag a key such as team", field="key")
    value = None if "remove" in request.POST else request.POST.get("value", "")
    return _annotated(request, name, number, Changes(tags={key: value}))


@require_POST
@page_scope(Scope.WRITE)
def description_action(request: HttpRequest, name: str, number: int | None = None) -> HttpResponse:
    """Change the description of a model or version; redirect to the page."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    if "description" not in request.POST:
        raise InvalidInput("description is missing; an empty one takes it away", field="description")
    text = request.POST["description"].replace("\r\n", "\n").rstrip()  # browsers submit line ends as CRLF
    return _annotated(request, name, number, Changes(description=text))


@require_POST
@page_scope(Scope.WRITE)
def model_delete_action(request: HttpRequest, name: str) -> HttpResponse:
    """Delete an unused model; redirect to the list."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    by_admin = may(page_token(request), Scope.ADMIN, Place.model(name))
    services.model_delete(name=name, now=timezone.now(), actor=page_actor(request), by_admin=by_admin)
    messages.success(request, f"The model {name} is deleted.")
    return leave(request, "registry:model-list")


@require_POST
@page_scope(Scope.WRITE)
def version_delete_action(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Delete an unused version; redirect to its model."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    services.version_delete(model=name, number=number, now=timezone.now(), actor=page_actor(request))
    messages.success(request, f"Version {number} is deleted.")
    return leave(request, "registry:model-detail", name)


@require_POST
@page_scope(Scope.WRITE)
def version_recheck_action(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Queue another check of a REJECTED version; redirect to its page, which shows the progress."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    version = check_again(model=name, number=number, now=timezone.now(), actor=page_actor(request))
    hints.send(check_version, version.pk)
    return leave(request, "registry:version-detail", name, number)


def _annotated(request: HttpRequest, name: str, number: int | None, changes: Changes) -> HttpResponse:
    """Change the metadata of the model, or of its version with that number; redirect to the page."""
    said: dict[str, Any] = {"changes": changes, "now": timezone.now(), "actor": page_actor(request)}
    if number is None:
        annotations.model_annotate(name=name, **said)
        return leave(request, "registry:model-detail", name)
    annotations.version_annotate(model=name, number=number, **said)
    return leave(request, "registry:version-detail", name, number)


@require_POST
@page_scope(Scope.WRITE)
def alias_action(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Point an alias at the version, or delete it, by the form; redirect to the page."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    alias = request.POST.get("alias", "").strip().removeprefix("@")
    said: dict[str, Any] = {"model": name, "name": alias, "now": timezone.now(), "actor": page_actor(request)}
    said["by_admin"] = may(page_token(request), Scope.ADMIN, Place.model(name))
    if "remove" in request.POST:
        services.alias_delete(**said)
        messages.success(request, f"The alias {alias} is deleted.")
    else:
        services.alias_set(**said, number=number)
        messages.success(request, f"The alias {alias} now points at version {number}.")
    return leave(request, "registry:version-detail", name, number)
