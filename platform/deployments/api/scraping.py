"""Metrics pages of replicas, for a team's own Prometheus."""

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import visible
from accounts.auth.permissions import caller_token
from accounts.domain.roles import Owned
from common.errors import InvalidInput
from deployments import selectors

_CONTROL_PLANE = "control-plane"
_PAGE = "text/plain; version=0.0.4; charset=utf-8"  # Prometheus: exposition formats
_VIA = OpenApiParameter(
    "via",
    str,
    enum=[_CONTROL_PLANE],
    description="`control-plane` lists all replicas' pages at this API, which accepts the same token; if absent, "
    "replicas that serve metrics on a port are listed at that port, where no token is sent.",
)


class TargetSerializer(serializers.Serializer[Any]):
    """One group of targets (Prometheus: HTTP service discovery)."""

    targets = serializers.ListField(child=serializers.CharField())
    labels = serializers.DictField(child=serializers.CharField())


class ScrapeTargetsView(APIView):
    """Prometheus HTTP service discovery of replicas."""

    @extend_schema(parameters=[_VIA], responses=TargetSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the metrics pages of all replicas that the caller may see, for Prometheus' `http_sd_configs`."""
        via = request.query_params.get("via", "")
        if via not in ("", _CONTROL_PLANE):
            raise InvalidInput(f"via is {via[:40]!r}; expected {_CONTROL_PLANE}, or nothing", field="via")
        targets = selectors.scrape_targets(
            only=visible(caller_token(request), Owned.NAMESPACE, "namespace"),
            control_plane=f"{request.scheme}://{request.get_host()}",
            every_page_there=bool(via),
        )
        return Response(TargetSerializer(targets, many=True).data)


class ReplicaMetricsView(APIView):
    """One replica's metrics page."""

    @extend_schema(responses={(200, "text/plain"): OpenApiTypes.STR})
    def get(self, request: Request, namespace: str, name: str, replica: str) -> HttpResponse:  # noqa: ARG002
        """Return the replica's metrics page as the replica serves it, in Prometheus' text format."""
        service = selectors.service_get(namespace=namespace, name=name)
        page = selectors.replica_metrics(service=service, replica=replica, now=timezone.now())
        return HttpResponse(page, content_type=_PAGE)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: the page has one format, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)
