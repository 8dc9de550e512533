"""Liveness, readiness and the Prometheus page of the control plane; public, since they show no stored data."""

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from control_plane.monitoring.collector import ControlPlaneCollector

# Apart from the default registry, which the worker shows too: only web queries the database for its page.
CONTROL_PLANE = CollectorRegistry()
CONTROL_PLANE.register(ControlPlaneCollector())


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
def metrics(_request: HttpRequest) -> HttpResponse:
    """Return the metrics of this process and of the whole control plane in Prometheus' text format."""
    return HttpResponse(generate_latest() + generate_latest(CONTROL_PLANE), content_type=CONTENT_TYPE_LATEST)
