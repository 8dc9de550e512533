"""Who accepts that a rollout breaks clients: an admin of the team that owns the service, with a reason."""

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from accounts.auth.access import Place, require
from accounts.auth.permissions import caller_token
from accounts.domain.scopes import Scope
from common.errors import InvalidInput
from deployments.services import check_reason

_FIELD = "accept_contract_changes"
ACCEPT = OpenApiParameter(
    _FIELD,
    bool,
    description="With `true` a rollout may break clients; needs scope and role admin, and a `reason`.",
)
REASON = OpenApiParameter("reason", str, description="Why clients may break; the rollout and the audit log keep it.")


def accepted(request: Request, namespace: str, *, is_asked: bool, reason: str | None) -> str | None:
    """Return why the caller accepts breaks; None where that is not asked for.

    Raises:
        InvalidInput: a reason without the wish, or the wish without a reason.
        NotPermitted: the caller is no admin of the namespace's team.
    """
    if not is_asked:
        if reason is not None:
            raise InvalidInput(f"reason is there without {_FIELD}; say both or neither", field="reason")
        return None
    require(caller_token(request), Scope.ADMIN, Place.namespace(namespace))
    return check_reason(reason or "")


def accepted_in_query(request: Request, namespace: str) -> str | None:
    """Return what `accepted` does, read from the query, for requests whose body is a file."""
    text = request.query_params.get(_FIELD, "false")
    if text not in ("true", "false"):
        raise InvalidInput(f"{_FIELD} is {text[:60]!r}; expected true or false", field=_FIELD)
    return accepted(request, namespace, is_asked=text == "true", reason=request.query_params.get("reason"))
