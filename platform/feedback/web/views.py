"""Pages of feedback: what is kept of a service's answers, labels, and quality by scorer and revision."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, may
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from clusters.services.connection import can_record
from common.errors import InvalidInput
from common.http.error_pages import leave
from deployments import selectors
from feedback.domain.scorers import KINDS
from feedback.selectors.quality import DAYS, MOST_DAYS
from feedback.services.answers import MAX_BYTES, MAX_DAYS, MAX_ROWS, KeepOrder, answers_keep, answers_stop
from feedback.services.scorers import scorer_delete, scorer_set
from feedback.web.feedback_form import keep_order, scorer_options
from feedback.web.feedback_page import feedback_context

_PAGE = "deployments:feedback"
_MIB = 1 << 20


@never_cache
@require_safe
@page_scope(Scope.READ)
def feedback_page(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Show what is kept of a service's answers, and how right they are; worst answers to admins alone."""
    service = selectors.service_get(namespace=namespace, name=name)
    token, place = page_token(request), Place.namespace(namespace)
    sees_worst = may(token, Scope.ADMIN, place)
    scorer = request.GET.get("scorer", "")
    found = feedback_context(service, scorer=scorer, days=_days(request), sees_worst=sees_worst)
    kept, usual = found["summary"].answers, KeepOrder()
    context = {
        **found,
        "service": service,
        "is_kept": service.kept_percent > 0,
        "may_write": may(token, Scope.WRITE, place),
        "sees_worst": sees_worst,
        "can_record": can_record(service.cluster),
        "form": kept or usual,
        "form_mib": (kept or usual).max_bytes // _MIB,
        "most": {"days": MAX_DAYS, "rows": MAX_ROWS, "mib": MAX_BYTES // _MIB},
        "kinds": list(KINDS),
        "api": request.build_absolute_uri(f"/api/v1/services/{namespace}/{name}/feedback"),
    }
    return render(request, "feedback/feedback.html", context)


@require_POST
@page_scope(Scope.WRITE)
def feedback_keep_action(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Keep answers of a service, or change what is kept of further ones."""
    answers_keep(
        namespace=namespace,
        name=name,
        order=keep_order(request.POST.dict()),
        actor=page_actor(request),
        now=timezone.now(),
    )
    messages.success(request, "Saved: answers to further requests are kept.")
    return leave(request, _PAGE, namespace, name)


@require_POST
@page_scope(Scope.WRITE)
def feedback_stop_action(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Keep no further answers."""
    answers_stop(namespace=namespace, name=name, actor=page_actor(request), now=timezone.now())
    messages.success(request, "No further answers are kept; those that are stay until their time.")
    return leave(request, _PAGE, namespace, name)


@require_POST
@page_scope(Scope.WRITE)
def scorer_set_action(request: HttpRequest, namespace: str, name: str) -> HttpResponse:
    """Add a scorer, or change one of that name."""
    said = request.POST.dict()
    row = scorer_set(
        namespace=namespace,
        name=name,
        scorer=said.get("scorer", "").strip(),
        kind=said.get("kind", ""),
        options=scorer_options(said),
        actor=page_actor(request),
        now=timezone.now(),
    )
    messages.success(request, f"Scorer {row.name} scores the labels from now on, and those that are there.")
    return leave(request, _PAGE, namespace, name)


@require_POST
@page_scope(Scope.WRITE)
def scorer_delete_action(request: HttpRequest, namespace: str, name: str, scorer: str) -> HttpResponse:
    """Delete a scorer with its scores."""
    scorer_delete(namespace=namespace, name=name, scorer=scorer, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Scorer {scorer} is deleted with its scores.")
    return leave(request, _PAGE, namespace, name)


def _days(request: HttpRequest) -> int:
    text = request.GET.get("days", str(DAYS))
    if not (text.isascii() and text.isdecimal() and len(text) < 5):
        raise InvalidInput(f"days is {text[:40]!r}; expected a number from 1 to {MOST_DAYS}", field="days")
    return int(text)
