"""Pages that add and change clusters: a typed file is checked, and its connection tested, before it is applied."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from clusters.domain.cluster_file import without_secrets
from clusters.models import Cluster
from clusters.selectors import cluster_get
from clusters.services.clusters import cluster_apply, cluster_delete
from clusters.services.plans import cluster_plan
from clusters.services.trial import cluster_patches_try, cluster_try
from clusters.web.cluster_form import BEGIN, form_of, with_form, with_kubeconfig
from common.errors import Conflict, FairleadError, InvalidInput
from common.files.editor.text import digest_of, document_of, lines_between, text_of
from common.http.error_pages import is_fragment, leave

PAGE = "deployments/cluster_edit.html"


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def cluster_edit_page(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show a cluster's form and its file as YAML; without a name those of a new one."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    return render(request, PAGE, _context(name))


@never_cache
@require_POST
@page_scope(Scope.ADMIN)
def cluster_fill_action(request: HttpRequest, name: str = "") -> HttpResponse:
    """Write the form into the file, or fill in the form from a typed file; return that part."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    said = request.POST.dict()
    try:
        context = _filled(*_typed(said, name), name)
    except InvalidInput:
        return HttpResponse(status=204)  # typing is in progress; the check reports what is wrong
    part = "text" if _is_form_newest(said) else "form"
    return render(request, f"deployments/_cluster_{part}.html", context | {"is_alone": part == "text"})


@never_cache
@require_POST
@page_scope(Scope.ADMIN)
def cluster_look_action(request: HttpRequest, name: str = "") -> HttpResponse:
    """Show what the file would change and the cluster's response; htmx gets that alone. Stores nothing."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    said = request.POST.dict()
    context = _context(name) | {"text": said.get("text", "")}
    try:
        context |= _filled(*_typed(said, name), name)
        document = _document(said, name)
        arguments: dict[str, Any] = {"document": document, "name": name or None}
        plan = cluster_plan(**arguments, actor=page_actor(request), now=timezone.now()).plan
        called = name or str(document["name"])
        patched, untried = cluster_patches_try(document=document, name=called)
        findings = cluster_try(document=document, name=called)
    except FairleadError as error:
        context |= {"refusal": error.message, "further": error.further}
    else:
        before = {} if plan.before is None else plan.before
        context |= {
            "plan": replace(plan, patched=patched, untried=untried),
            "called": called,
            "lines": lines_between(text_of(before) if before else "", text_of(without_secrets(document))),
            "looked": _digest(document),
            "findings": findings,
            "ok": all(finding.ok for finding in findings),
        }
    return render(request, "deployments/_cluster_plan.html" if is_fragment(request) else PAGE, context)


@require_POST
@page_scope(Scope.ADMIN)
def cluster_apply_action(request: HttpRequest, name: str = "") -> HttpResponse:
    """Apply the checked file, and redirect to the cluster's page, which checks it."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    document = _document(request.POST.dict(), name)
    if request.POST.get("looked") != _digest(document):
        raise Conflict("what you typed, or the cluster's file, was changed since you looked; look at it again")
    row, created = cluster_apply(document=document, name=name or None, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Cluster {row.name} is {'there' if created else 'changed'} now.")
    return leave(request, "deployments:cluster-detail", row.name)


@require_POST
@page_scope(Scope.ADMIN)
def cluster_delete_action(request: HttpRequest, name: str) -> HttpResponse:
    """Delete a cluster on which no service runs."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    cluster_delete(name=name, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Cluster {name} is forgotten; what runs on it was left alone.")
    return leave(request, "deployments:platform")


def _context(name: str) -> dict[str, Any]:
    if not name:
        return _filled(BEGIN, text_of(BEGIN), name)
    row = cluster_get(name=name)
    if row.document is None:
        raise InvalidInput(f"cluster {name!r} is this machine, which has no file")
    return _filled(row.document, text_of(row.document), name)


def _filled(document: Mapping[str, Any], text: str, name: str) -> dict[str, Any]:
    """Return what the page shows of a file: its form, its text, and the text that the form belongs to."""
    return {"name": name, "form": form_of(document, is_new=not name), "text": text, "seen": digest_of(text)}


def _typed(said: Mapping[str, str], name: str) -> tuple[dict[str, Any], str]:
    """Return the typed file, as a document and as text, with the form's fields where those are newer."""
    text = said.get("text", "")
    document = dict(document_of(text, what="cluster file", begins="name"))
    after = with_form(document, said, is_new=not name) if _is_form_newest(said) else document
    return after, text if after == document else text_of(after)


def _is_form_newest(said: Mapping[str, str]) -> bool:
    """Return whether the text is still the one that the form was filled in from."""
    return said.get("seen") == digest_of(said.get("text", ""))


def _document(said: Mapping[str, str], name: str) -> dict[str, Any]:
    """Return the typed cluster file, with the kubeconfig given separately."""
    document, _ = _typed(said, name)
    if not name and not (isinstance(document.get("name"), str) and document["name"]):
        raise InvalidInput("name is missing; give the cluster one, such as production", field="name")
    if not name and Cluster.objects.filter(name=document["name"]).exists():
        raise InvalidInput(f"there is a cluster {document['name'][:80]!r} already; change it on its page", field="name")
    return with_kubeconfig(document, said.get("kubeconfig", ""))


def _digest(document: Mapping[str, Any]) -> str:
    """Return a digest of a file and of the one that it replaces."""
    row = Cluster.objects.filter(name=str(document.get("name"))).first()
    both = [document, None if row is None else row.document]
    return hashlib.sha256(json.dumps(both, sort_keys=True, default=str).encode()).hexdigest()
