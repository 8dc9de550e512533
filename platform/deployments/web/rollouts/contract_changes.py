"""Breaking changes for clients, on pages: shown beside the plan, and accepted by a team's admin with a reason."""

from collections.abc import Callable

from django.http import HttpRequest

from accounts.auth.access import Place, may, require
from accounts.auth.permissions import page_token
from accounts.domain.scopes import Scope
from common.errors import ContractBroken
from deployments.services import check_reason
from deployments.views.shapes import Plan


def planned_with_breaks(planned: Callable[[str | None], Plan]) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan, and its breaking changes, each in a sentence.

    Viewing accepts nothing: the breaks are accepted only in this plan, so that it can be shown beside them.

    Args:
        planned: takes the reason for accepting breaks; with None it raises ContractBroken.
    """
    try:
        return planned(None), ()
    except ContractBroken as broken:
        return planned("shown on the page"), tuple(str(each) for each in broken.details or ())


def may_accept(request: HttpRequest, namespace: str) -> bool:
    """Return whether the caller may accept breaks of services in the namespace."""
    return may(page_token(request), Scope.ADMIN, Place.namespace(namespace))


def accepted_by_form(request: HttpRequest, namespace: str) -> str | None:
    """Return the reason for accepting breaks; None where the form has none.

    Raises:
        InvalidInput: the reason is empty or too long.
        NotPermitted: the caller is no admin of the namespace's team.
    """
    if "accept" not in request.POST:
        return None
    require(page_token(request), Scope.ADMIN, Place.namespace(namespace))
    return check_reason(request.POST.get("reason", ""))
