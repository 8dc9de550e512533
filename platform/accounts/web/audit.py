"""Audit log page: actor, action, object, and the fields that changed."""

from dataclasses import dataclass
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.selectors import audit_list
from accounts.selectors.audit import FILTERS, Difference, differences, page_of
from accounts.selectors.audit_export import Format, pieces
from accounts.selectors.audit_sinks import sink_states
from common.http.downloads import Attachment
from common.http.error_pages import newest

_ASKED = ("under", "user", "action", "since", "until", "request_id")
_DIFFERENCES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Row:
    """An entry with its changed fields: the first few, and the rest, which is collapsed.

    Attributes:
        detail: related facts, as added fields.
        page: the address of its object's page; may be empty.
    """

    entry: AuditEntry
    detail: tuple[Difference, ...]
    page: str
    first: tuple[Difference, ...]
    rest: tuple[Difference, ...]

    @classmethod
    def of(cls, entry: AuditEntry) -> "Row":
        """Return the row of an entry."""
        found = differences(entry.before, entry.after)
        shown = len(found) if len(found) == _DIFFERENCES_SHOWN + 1 else _DIFFERENCES_SHOWN
        detail = differences(None, entry.detail)
        return cls(entry, detail, page_of(entry.target, entry.action), found[:shown], found[shown:])


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def audit_list_page(request: HttpRequest) -> HttpResponse:
    """Show the audit log, newest first, filtered by the form."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    asked = _asked(request)
    rows, older = newest(request, _narrowed(asked))
    context = {
        "sinks": sink_states(now=timezone.now()),
        "rows": [Row.of(entry) for entry in rows],
        "older": older,
        "asked": asked,
        "is_narrowed": any(asked.values()),
        "formats": [(Format.CSV, "Export CSV"), (Format.JSONL, "Export JSON lines")],
        "query": urlencode({name: value for name, value in asked.items() if value}),
    }
    return render(request, "accounts/audit_list.html", context)


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """Send all that the page would show, oldest first, as a file."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    form = Format.of(request.GET.get("format", ""))
    entries = _narrowed(_asked(request)).order_by("id").iterator(chunk_size=500)
    kind = "text/csv" if form is Format.CSV else "application/x-ndjson"
    return Attachment(pieces(entries, form), filename=f"audit.{form}", content_type=f"{kind}; charset=utf-8")


def _asked(request: HttpRequest) -> dict[str, str]:
    return {name: request.GET.get(name, "").strip() for name in _ASKED}


def _narrowed(asked: dict[str, str]) -> QuerySet[AuditEntry]:
    return audit_list().filter(*(one.condition(asked[one.name]) for one in FILTERS if asked.get(one.name)))
