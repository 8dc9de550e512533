"""Liveness, readiness and the Prometheus page of the control plane.

Health is public, since it shows no stored data. The metrics page has names of services and teams;
`FAIRLEAD_METRICS_ACCESS=token` limits it to tokens and to this machine.
"""

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address

from django.conf import settings
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.registry import Collector

from accounts.auth.access import Place, require
from accounts.auth.authentication import bearer_token
from accounts.domain.scopes import Scope
from common.errors import FairleadError, NotAuthenticated, status_of
from common.http.error_body import error_body
from control_plane.monitoring.collector import ControlPlaneCollector

# Apart from the default registry, which the worker shows too: only web queries the database for its page.
CONTROL_PLANE = CollectorRegistry()
CONTROL_PLANE.register(ControlPlaneCollector())
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "Via")


class _WholePage(Collector):
    """Both registries, for a port of its own, whose threads have no request that closes their database connection."""

    def describe(self) -> Iterator[Metric]:
        """Return nothing: the two registries know their names."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Return all metrics of web's page."""
        try:
            yield from REGISTRY.collect()
            yield from CONTROL_PLANE.collect()
        finally:
            connection.close()


OWN_PORT = CollectorRegistry(auto_describe=False)
OWN_PORT.register(_WholePage())


@require_safe
def live(_request: HttpRequest) -> HttpResponse:
    """Return 200 while the process runs."""
    return JsonResponse({"live": True})


@require_safe
def ready(_request: HttpRequest) -> HttpResponse:
    """Return 200 when the database responds, else 503 with the reason."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError as error:
        return JsonResponse({"ready": False, "reason": f"database: {error}"}, status=503)
    return JsonResponse({"ready": True})


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Return the metrics of this process and of the whole control plane in Prometheus' text format."""
    try:
        _check_scrape(request)
    except FairleadError as error:
        refusal = JsonResponse(error_body(error.code, error.message, error.field), status=status_of(error))
        if isinstance(error, NotAuthenticated):
            refusal.headers["WWW-Authenticate"] = 'Bearer realm="fairlead"'
        return refusal
    return HttpResponse(generate_latest() + generate_latest(CONTROL_PLANE), content_type=CONTENT_TYPE_LATEST)


def _check_scrape(request: HttpRequest) -> None:
    """Raise unless the page is open to anyone, or the caller is on this machine or has a token of the default team."""
    if settings.METRICS_ACCESS == "anyone" or _is_of_this_machine(request):
        return
    token = bearer_token(request)
    if token is None:
        raise NotAuthenticated(
            "the metrics page needs a token with scope read in `Authorization: Bearer flt_…`; Prometheus sends it by "
            "`authorization.credentials_file`"
        )
    require(token, Scope.READ, Place.installation())


def _is_of_this_machine(request: HttpRequest) -> bool:
    """Return whether the request came over loopback, and not through a proxy there."""
    if any(name in request.headers for name in _FORWARDED):
        return False
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    # Of the forms with an IPv4 address inside, only this one comes from no network.
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return (mapped or address).is_loopback
