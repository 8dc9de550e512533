"""Content-Security-Policy, strict, on every response; a page loads everything from the control plane itself."""

from django.http import HttpRequest, HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    ]
)


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Adds the policy unless the view set one of its own."""

    def process_response(self, _request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return `response` with the policy."""
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
