"""Services named in request bodies."""

from rest_framework.request import Request

from accounts.auth.access import Place, require
from accounts.auth.permissions import caller_token
from accounts.domain.scopes import Scope
from common.errors import InvalidInput


def named_service(request: Request, text: str, needed: Scope) -> tuple[str, str]:
    """Return namespace and name of `NAMESPACE/NAME`; requires `needed` permission on the service.

    Raises:
        InvalidInput: it is not written so.
        NotPermitted: the token or the role is too narrow.
        NotFound: it is another team's.
    """
    namespace, slash, name = text.partition("/")
    if not (namespace and slash and name):
        raise InvalidInput(f"service is {text!r}; expected NAMESPACE/NAME", field="service")
    require(caller_token(request), needed, Place.namespace(namespace))
    return namespace, name
