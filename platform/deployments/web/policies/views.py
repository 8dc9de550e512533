"""Rollout policy pages: a list, and an editor as form and YAML with a live drawing of the steps."""

from collections.abc import Mapping
from typing import Any

from django.contrib import messages
from django.db.models import OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, is_administrator, may, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.db.count import CountUpTo
from common.errors import Conflict, FairleadError, InvalidInput
from common.files.editor.text import digest_of, text_of
from common.http.error_pages import is_fragment, leave, newest
from deployments.domain.policy import stored_policy
from deployments.models import InferenceService
from deployments.selectors import policy_get, policy_query
from deployments.services import policy_apply, policy_delete
from deployments.services.dry_run import policy_plan
from deployments.web.policies.drawing import document_in, drawing_of, problem_of, read
from deployments.web.policies.form import changed, done, form_of, has_comments

PAGE = "deployments/policy_edit.html"
_BEGIN = """\
name: careful
strategy: canary
steps:
- weight: 10
  hold: 5m
  analysis: {minRequests: 500}
- weight: 50
  hold: 10m
  analysis: {minRequests: 2000}
  pause: true
"""

_USING = InferenceService.objects.filter(policy=OuterRef("pk"))


@never_cache
@require_safe
@page_scope(Scope.READ)
def policy_list_page(request: HttpRequest) -> HttpResponse:
    """Show the policies with their steps' portions and how many services name them."""
    rows, older = newest(request, policy_query().annotate(used=CountUpTo(_USING)))
    context = {
        "policies": [(row, drawing_of(stored_policy(row.document))) for row in rows],
        "older": older,
        "may_write": _may_write(request),
    }
    return render(request, "deployments/policy_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def policy_page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show a policy's form, text and drawing; without a name an example for a new one."""
    row = policy_get(name=name) if name else None
    text = _BEGIN if row is None else text_of(row.document)
    used = [] if row is None else [str(each) for each in row.services.order_by("namespace", "name")[:20]]
    context = {"row": row, "used": used, "version": "" if row is None else row.version, **_looked(request, text, name)}
    return render(request, PAGE, context)


@require_POST
@page_scope(Scope.READ)
def policy_look(request: HttpRequest) -> HttpResponse:
    """Draw the typed text and fill the form from it, or show the line at fault; htmx gets only these."""
    return _answer(request, _looked(request, request.POST.get("text", ""), request.POST.get("policy", "")), "form")


@require_POST
@page_scope(Scope.READ)
def policy_fill(request: HttpRequest) -> HttpResponse:
    """Write the form's values into the text, and draw it; htmx gets only these, and the form where it differs."""
    text, name = request.POST.get("text", ""), request.POST.get("policy", "")
    try:
        before = document_in(text)
    except InvalidInput:
        return _answer(request, _looked(request, text, name), "form")
    if request.POST.get("seen") != digest_of(text):  # the text was changed after the form had been filled from it
        return _answer(request, _looked(request, text, name), "form")
    after = changed(before, request.POST.dict())
    if action := request.POST.get("do", ""):
        after = done(after, action)
    context = _looked(request, text if after == before else text_of(after), name)
    was = form_of(before, is_new=not name)
    is_same = was is not None and context["form"] is not None and was.shape == context["form"].shape
    return _answer(request, context, *(["text"] if is_same and not action else ["text", "form"]))


@require_POST
@page_scope(Scope.WRITE)
def policy_apply_action(request: HttpRequest) -> HttpResponse:
    """Save the typed text, unless the policy was changed meanwhile; an invalid one is shown again with its line."""
    require(page_token(request), Scope.WRITE, Place.installation())
    name, text = request.POST.get("policy", ""), _with_form(request.POST.dict())
    try:
        document, policy = read(text, name=name or None)
    except InvalidInput:
        context = {**_looked(request, text, name), "version": request.POST.get("version", "")}
        return render(request, PAGE, context, status=400)
    present = policy_query().filter(name=policy.name).first()
    if str("" if present is None else present.version) != request.POST.get("version", ""):
        found = "is there already" if not name else "was changed or deleted since you opened it"
        raise Conflict(f"policy {policy.name} {found}; open it again, so that no change is lost")
    row, created = policy_apply(
        document=document,
        name=policy.name,
        actor=page_actor(request),
        now=timezone.now(),
        may_read_all_series=is_administrator(page_token(request)),
    )
    messages.success(request, f"Policy {row.name} is {'there' if created else f'at version {row.version}'} now.")
    return leave(request, "deployments:policy-detail", row.name)


@require_POST
@page_scope(Scope.WRITE)
def policy_delete_action(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a policy that no service names."""
    require(page_token(request), Scope.WRITE, Place.installation())
    policy_delete(name=name, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Policy {name} is deleted.")
    return leave(request, "deployments:policy-list")


def _with_form(said: Mapping[str, str]) -> str:
    """Return the text with the form's values that are not written into it yet, as during quick typing."""
    text = said.get("text", "")
    if said.get("seen") != digest_of(text):
        return text
    try:
        before = document_in(text)
    except InvalidInput:
        return text
    after = changed(before, said)
    return text if after == before else text_of(after)


def _looked(request: HttpRequest, text: str, name: str) -> dict[str, Any]:
    """Return the form and the drawing of a text and the effect of saving it, or what is wrong with it."""
    context: dict[str, Any] = {
        "name": name,
        "text": text,
        "form": None,
        "seen": digest_of(text),
        "has_comments": has_comments(text),
        "may_write": _may_write(request),
    }
    try:
        context["form"] = form_of(document_in(text), is_new=not name)
        document, policy = read(text, name=name or None)
        context["drawing"] = drawing_of(policy)
        plan = policy_plan(document=document, name=policy.name, actor=page_actor(request), now=timezone.now())
        context["message"] = plan.message
    except InvalidInput as error:
        context["problem"] = problem_of(text, error)
    except FairleadError as error:
        context["message"] = error.message
    return context


def _answer(request: HttpRequest, context: dict[str, Any], *beside: str) -> HttpResponse:
    """Answer htmx with the drawing and the part that differs, form or text; others with the page."""
    if is_fragment(request):
        return render(request, "deployments/_policy_looked.html", {**context, "beside": beside})
    return render(request, PAGE, {**context, "version": request.POST.get("version", "")})


def _may_write(request: HttpRequest) -> bool:
    return may(page_token(request), Scope.WRITE, Place.installation())
