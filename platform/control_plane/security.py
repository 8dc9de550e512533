"""Security headers of every response: Content-Security-Policy, strict, and Strict-Transport-Security behind TLS.

A page loads everything from the control plane itself.
"""

from django.conf import settings
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
# A year, for this host alone: other names of its domain may be served without TLS.
TRANSPORT = "max-age=31536000"


class StrictTransportSecurityMiddleware(MiddlewareMixin):
    """Adds the header where `FAIRLEAD_URL` is https; Django's needs a proxy whose headers are believed."""

    def process_response(self, _request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return `response` with the header; browsers ignore it over plain http."""
        if settings.SECURE_COOKIES:
            response.headers.setdefault("Strict-Transport-Security", TRANSPORT)
        return response


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """Adds the policy unless the view set one of its own."""

    def process_response(self, _request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return `response` with the policy."""
        response.headers.setdefault("Content-Security-Policy", POLICY)
        return response
