"""What would break clients, on pages: shown beside the plan, and accepted by an admin of the team with a reason."""

from collections.abc import Callable

from django.http import HttpRequest

from accounts.auth.access import Place, may, require
from accounts.auth.permissions import page_token
from accounts.domain.scopes import Scope
from common.errors import ContractBroken
from deployments.services import check_reason
from deployments.views.shapes import Plan


def planned_with_breaks(planned: Callable[[str | None], Plan]) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan, and what of it would break clients, each in a sentence.

    Who looks accepts nothing yet: with the breaks accepted in the plan alone, it can be shown beside them.

    Args:
        planned: takes why breaks are accepted, None where they are not; raises ContractBroken then.
    """
    try:
        return planned(None), ()
    except ContractBroken as broken:
        return planned("shown on the page"), tuple(str(each) for each in broken.details or ())


def may_accept(request: HttpRequest, namespace: str) -> bool:
    """Return whether the caller may accept breaks of services in the namespace."""
    return may(page_token(request), Scope.ADMIN, Place.namespace(namespace))


def accepted_by_form(request: HttpRequest, namespace: str) -> str | None:
    """Return why breaks are accepted; None where the form says nothing of that.

    Raises:
        InvalidInput: the reason is empty or too long.
        NotPermitted: the caller is no admin of the namespace's team.
    """
    if "accept" not in request.POST:
        return None
    require(page_token(request), Scope.ADMIN, Place.namespace(namespace))
    return check_reason(request.POST.get("reason", ""))
