"""The page of the audit log: who did what to which object, and which of its fields that changed."""

from dataclasses import dataclass

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.access import Place, require
from accounts.audit import FILTERS, Difference, differences
from accounts.models import AuditEntry
from accounts.permissions import page_scope, page_token
from accounts.scopes import Scope
from accounts.selectors import audit_list
from common.pages import newest

_ASKED = ("under", "user", "action", "since", "until", "request_id")
_DIFFERENCES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Row:
    """An entry with what it changed: the first few fields, and the rest, which is unfolded."""

    entry: AuditEntry
    first: tuple[Difference, ...]
    rest: tuple[Difference, ...]

    @classmethod
    def of(cls, entry: AuditEntry) -> "Row":
        """Return the row of an entry."""
        found = differences(entry.before, entry.after)
        shown = len(found) if len(found) == _DIFFERENCES_SHOWN + 1 else _DIFFERENCES_SHOWN
        return cls(entry, found[:shown], found[shown:])


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def audit_list_page(request: HttpRequest) -> HttpResponse:
    """Show what was done, newest first, narrowed as the form asks."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    asked = {name: request.GET.get(name, "").strip() for name in _ASKED}
    conditions = [one.condition(asked[one.name]) for one in FILTERS if asked.get(one.name)]
    rows, older = newest(request, audit_list().filter(*conditions))
    context = {
        "rows": [Row.of(entry) for entry in rows],
        "older": older,
        "asked": asked,
        "is_narrowed": any(asked.values()),
    }
    return render(request, "accounts/audit_list.html", context)
