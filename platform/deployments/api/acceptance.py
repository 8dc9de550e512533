"""Acceptance of breaking changes: by an admin of the team that owns the service, with a reason."""

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
    description="With `true`, the rollout may break clients; requires scope and role admin, and a `reason`.",
)
REASON = OpenApiParameter(
    "reason", str, description="Reason for accepting breaking changes; stored in the rollout and in the audit log."
)


def accepted(request: Request, namespace: str, *, is_asked: bool, reason: str | None) -> str | None:
    """Return the reason for accepting breaking changes; None if the request does not accept them.

    Raises:
        InvalidInput: a reason without acceptance, or acceptance without a reason.
        NotPermitted: the caller is no admin of the namespace's team.
    """
    if not is_asked:
        if reason is not None:
            raise InvalidInput(f"reason is there without {_FIELD}; say both or neither", field="reason")
        return None
    require(caller_token(request), Scope.ADMIN, Place.namespace(namespace))
    return check_reason(reason or "")


def accepted_in_query(request: Request, namespace: str) -> str | None:
    """Return the result of `accepted` for query parameters, for requests whose body is a file."""
    text = request.query_params.get(_FIELD, "false")
    if text not in ("true", "false"):
        raise InvalidInput(f"{_FIELD} is {text[:60]!r}; expected true or false", field=_FIELD)
    return accepted(request, namespace, is_asked=text == "true", reason=request.query_params.get("reason"))
