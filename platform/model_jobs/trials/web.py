"""Trials on the page "Try it": one request, run by a short-lived runtime where no service serves the version.

The page polls while the trial runs, and gets the same part of the page each time, or nothing new.
"""

import json
from typing import Any
from zlib import crc32

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from common.errors import FairleadError
from common.http.error_pages import is_fragment
from deployments.web.try_page import Field, shown
from deployments.web.try_page.views import checked, code, form_context
from integrations.v2 import tensors
from jobs.domain.attempts import Status
from jobs.services import hints
from model_jobs import tasks
from model_jobs.models import Trial
from model_jobs.trials.domain.order import steps_at
from model_jobs.trials.selectors import trial_get
from model_jobs.trials.services import trial_start, trial_stop

_OUTCOME, _PAGE = "deployments/_try_outcome.html", "deployments/try.html"
_OK = 200
_MOST_TYPED = 20_000


@never_cache
@require_POST
@page_scope(Scope.WRITE)
def trial_start_action(request: HttpRequest, model: str, number: int) -> HttpResponse:
    """Order a trial by the form, and show its progress."""
    context = form_context(request, model, number, "")
    require(page_token(request), Scope.WRITE, Place.model(model))
    said = request.POST.dict()
    try:
        body = checked(context["fields"], said)
        actor = page_actor(request)
        row = trial_start(model=model, number=number, request=body, actor=actor, now=timezone.now())
    except FairleadError as error:
        context |= {"problem": error.message, "said": said, "is_sent": True}
        return render(request, _OUTCOME if is_fragment(request) else _PAGE, context)
    hints.send(tasks.try_version, row.pk)
    if not is_fragment(request):
        return redirect("deployments:trial", model, number, row.pk)
    shown_now = render(request, _OUTCOME, context | _outcome(row, context))
    shown_now["Page-Address"] = reverse("deployments:trial", args=(model, number, row.pk))
    return shown_now


@never_cache
@require_safe
@page_scope(Scope.READ)
def trial_page(request: HttpRequest, model: str, number: int, trial_id: int) -> HttpResponse:
    """Show a trial beside the form; 204 to a poll that has already seen the current stage."""
    context = form_context(request, model, number, "")
    row = trial_get(model=model, number=number, trial_id=trial_id)
    if is_fragment(request) and row.status == Status.PENDING and request.headers.get("Trial-Seen") == _mark(row):
        return HttpResponse(status=204)
    context |= _outcome(row, context)
    return render(request, _OUTCOME if is_fragment(request) else _PAGE, context)


@never_cache
@require_POST
@page_scope(Scope.WRITE)
def trial_stop_action(request: HttpRequest, model: str, number: int, trial_id: int) -> HttpResponse:
    """Stop a trial and show its end."""
    context = form_context(request, model, number, "")
    require(page_token(request), Scope.WRITE, Place.model(model))
    trial_stop(model=model, number=number, trial_id=trial_id, actor=page_actor(request), now=timezone.now())
    if not is_fragment(request):
        return redirect("deployments:trial", model, number, trial_id)
    row = trial_get(model=model, number=number, trial_id=trial_id)
    return render(request, _OUTCOME, context | _outcome(row, context))


def _outcome(row: Trial, context: dict[str, Any]) -> dict[str, Any]:
    """Return the page's content of a trial."""
    request = json.loads(row.request)
    said = _typed(request, context["fields"])
    found = {"trial": row, "code": code(request, None, context["version"]), "said": said}
    if row.status == Status.PENDING:
        return found | {"steps": steps_at(row.stage), "mark": _mark(row)}
    found["is_sent"] = True
    if row.status == Status.FAILED:
        return found | {"problem": f"the version was not tried: {row.reason}"}
    if "error" in row.report:
        status = row.report["status"]
        refused = f"the runtime answered {status}: {row.report['error']}" if status != _OK else row.report["error"]
        return found | {"problem": refused}
    outputs = tensors.outputs_of(json.loads(row.answer))
    return found | {"outputs": shown(outputs, row.report.get("labels", {}))}


def _typed(request: dict[str, Any], fields: tuple[Field, ...]) -> dict[str, str]:
    """Return the form as filled in, without long values, such as a picture."""
    sent = {each["name"]: each for each in request["inputs"] if isinstance(each, dict) and "name" in each}
    texts = {field.index: json.dumps(sent.get(field.tensor.name, {}).get("data", "")) for field in fields}
    return {f"data-{index}": text for index, text in texts.items() if text != '""' and len(text) <= _MOST_TYPED}


def _mark(row: Trial) -> str:
    """Return a change marker of a running trial; valid in a header."""
    return f"{row.attempts}-{crc32(row.stage.encode()):08x}"
