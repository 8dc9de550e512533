"""Form handlers of protected aliases and approvals, on the pages of a model and of a version."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_POST

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.errors import InvalidInput
from common.http.error_pages import leave
from registry.domain.approval import parse_decision
from registry.selectors.kept_rules import has_changed_hands
from registry.services import governance
from registry.services.model_rows import kept_rules_remove


@require_POST
@page_scope(Scope.ADMIN)
def protection_action(request: HttpRequest, name: str) -> HttpResponse:
    """Protect an alias of the model, or lift the protection, by the form; redirect to the page."""
    require(page_token(request), Scope.ADMIN, Place.model(name))
    alias = request.POST.get("alias", "").strip().removeprefix("@")
    said: dict[str, Any] = {"model": name, "name": alias, "now": timezone.now(), "actor": page_actor(request)}
    if "remove" in request.POST:
        governance.alias_unprotect(**said)
        messages.success(request, f"Every deployer may move the alias {alias} now.")
    else:
        governance.alias_protect(**said)
        messages.success(request, f"Only admins may move the alias {alias} now.")
    return leave(request, "registry:model-detail", name)


@require_POST
@page_scope(Scope.ADMIN)
def approval_rule_action(request: HttpRequest, name: str) -> HttpResponse:
    """Require approval for deployment, or lift it, by the form; redirect to the page."""
    require(page_token(request), Scope.ADMIN, Place.model(name))
    asked = request.POST.get("required", "")
    if asked not in ("yes", "no"):
        raise InvalidInput(f"required is {asked[:40]!r}; expected yes or no", field="required")
    governance.approval_require(model=name, is_required=asked == "yes", now=timezone.now(), actor=page_actor(request))
    which = "only approved versions" if asked == "yes" else "versions without approval"
    messages.success(request, f"Services can use {which} now.")
    return leave(request, "registry:model-detail", name)


@require_POST
@page_scope(Scope.ADMIN)
def kept_rules_action(request: HttpRequest, name: str) -> HttpResponse:
    """Remove the rules that a deleted model left; redirect to the list of models."""
    token = page_token(request)
    require(token, Scope.ADMIN, Place.model(name))
    if has_changed_hands(name=name):
        require(token, Scope.ADMIN, Place.installation())
    kept_rules_remove(name=name, now=timezone.now(), actor=page_actor(request))
    messages.success(request, f"The next model {name} begins without rules.")
    return leave(request, "registry:model-list")


@require_POST
@page_scope(Scope.WRITE)
def approval_action(request: HttpRequest, name: str, number: int) -> HttpResponse:
    """Approve or decline the version, by the form; redirect to the page."""
    require(page_token(request), Scope.WRITE, Place.model(name))
    decision = parse_decision(request.POST.get("state", ""))
    governance.version_decide(
        model=name,
        number=number,
        decision=decision,
        comment=request.POST.get("comment", ""),
        approver=page_token(request).approver,
        now=timezone.now(),
        actor=page_actor(request),
    )
    messages.success(request, f"Version {number} is {decision}.")
    return leave(request, "registry:version-detail", name, number)
