"""API authentication: a bearer token, or the session of a browser that signed in with one.

Both leave the `ApiToken` in `request.auth`, the only input of `accounts.auth.permissions`.
"""

from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import CsrfViewMiddleware
from django.utils import timezone
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.auth import rate_limits
from accounts.models import ApiToken, User
from accounts.selectors import token_of_session
from accounts.services import token_use
from common.errors import NotAuthenticated, NotPermitted


def bearer_token(request: HttpRequest) -> ApiToken | None:
    """Return the token of the Authorization header, counted as used; None where the header is absent.

    Raises:
        NotAuthenticated: it is of another form, or its token is not valid.
        TooManyRequests: its rate limit is reached.
    """
    words = request.headers.get("Authorization", "").split()
    if not words:
        return None
    if len(words) != 2 or words[0].lower() != "bearer":
        raise NotAuthenticated("the Authorization header is not of the form `Bearer flt_…`")
    try:
        token = token_use(secret=words[1], now=timezone.now())
    except NotAuthenticated:
        rate_limits.count_failed_signin(request)
        raise
    rate_limits.count_token(request, token)
    return token


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer flt_…`."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token and its user; None where the header is absent; raises NotAuthenticated."""
        token = bearer_token(request._request)
        return None if token is None else (token.user, token)

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        """Return the WWW-Authenticate value of a 401."""
        return 'Bearer realm="fairlead"'


class SessionAuthentication(BaseAuthentication):
    """The browser's session; unsafe methods need the CSRF token, since a browser sends the cookie by itself."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """Return the token the session was signed in with; None without a live one."""
        token = token_of_session(request=request._request, now=timezone.now())
        if token is None:
            return None
        rate_limits.count_token(request._request, token)
        _enforce_csrf(request._request)
        return token.user, token


class _CsrfCheck(CsrfViewMiddleware):
    def _reject(self, request: HttpRequest, reason: str) -> str:  # noqa: ARG002
        return reason


def _enforce_csrf(request: HttpRequest) -> None:
    def unused(_request: HttpRequest) -> HttpResponse:
        raise AssertionError("the CSRF check calls no view")

    check = _CsrfCheck(unused)
    check.process_request(request)
    reason = check.process_view(request, unused, (), {})
    if reason:
        raise NotPermitted(f"the request came with a session but failed the CSRF check: {reason}")
