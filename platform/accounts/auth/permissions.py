"""Permission checks of the API (`HasScope`) and of pages (`page_scope`)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import iscoroutinefunction, sync_to_async
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.auth import rate_limits
from accounts.auth.access import Place, require
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.selectors import token_of_session
from accounts.services import actor_name
from common.errors import NotAuthenticated


class HasScope(BasePermission):
    """Safe methods need `read`, others `write`; a view may require more in `scopes = {"POST": Scope.ADMIN}`.

    The token's scope must allow it, and the user's role at the request's place: the view's `place()`, else the
    namespace in the address. Addresses of single objects without either, and everything that needs `admin`, require the
    role in the default team; for the rest a role in any team suffices.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True or raise the error that says which scope is missing."""
        method = request.method or ""
        needed = getattr(view, "scopes", {}).get(method, Scope.READ if method in SAFE_METHODS else Scope.WRITE)
        require(caller_token(request), needed, _place(view, needed))
        return True


def _place(view: Any, needed: Scope) -> Place:
    if hasattr(view, "place"):
        place: Place = view.place()
        return place
    if "namespace" in view.kwargs:
        return Place.namespace(view.kwargs["namespace"])
    return Place.installation() if view.kwargs or needed is Scope.ADMIN else Place.anywhere()


def actor_of(request: Request) -> str:
    """Return the audit log's name of the caller of an API view."""
    return actor_name(caller_token(request))


def caller_token(request: Request) -> ApiToken:
    """Return the token of an API request, by header or by session; raises NotAuthenticated without one."""
    token: object = request.auth
    if not isinstance(token, ApiToken):
        raise NotAuthenticated("this needs an API token in the header `Authorization: Bearer flt_…`")
    return token


def page_token(request: HttpRequest) -> ApiToken:
    """Return the token of the viewer of a page that `page_scope` guards."""
    token: ApiToken = request.token  # type: ignore[attr-defined]
    return token


def page_actor(request: HttpRequest) -> str:
    """Return the audit log's name of the viewer of a page that `page_scope` guards."""
    return actor_name(page_token(request))


def page_scope(needed: Scope) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Guard a page (synchronous or not): redirects to the sign-in page without a session; 403 or 404 without the right.

    A page whose address has a namespace needs a role there; on other pages any role in any team counts.

    The view finds the `ApiToken` as `request.token`, and its name for the audit log as `request.actor`.
    """

    def decorate(view: Callable[..., Any]) -> Callable[..., Any]:
        if iscoroutinefunction(view):

            @wraps(view)
            async def asynchronous(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
                refusal = await sync_to_async(_admit)(request, needed, kwargs.get("namespace"))
                return refusal or await view(request, *args, **kwargs)

            return asynchronous

        @wraps(view)
        def synchronous(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            return _admit(request, needed, kwargs.get("namespace")) or view(request, *args, **kwargs)

        return synchronous

    return decorate


def _admit(request: HttpRequest, needed: Scope, namespace: str | None) -> HttpResponseBase | None:
    token = token_of_session(request=request, now=timezone.now())
    if token is None:
        return redirect_to_login(request.get_full_path())
    request.token = token  # type: ignore[attr-defined] # also on the page of a refusal, for its way to sign out
    rate_limits.count_token(request, token)
    if not token.allows(needed):
        raise PermissionDenied(f"this needs a token with scope {needed.value}; you signed in with scope {token.scope}")
    require(token, needed, Place.anywhere() if namespace is None else Place.namespace(namespace))
    request.actor = actor_name(token)  # type: ignore[attr-defined]
    return None
