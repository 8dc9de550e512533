"""`/api/v1/services/NAMESPACE/NAME/traffic`: recent client traffic of a service, by revision."""

from datetime import timedelta
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.errors import InvalidInput
from deployments import selectors
from deployments.reconcile.participants import traffic

_LONGEST = int(traffic.KEPT / timedelta(minutes=1))
_MINUTES = OpenApiParameter(
    "minutes", int, description=f"Length of the period in minutes, 1 to {_LONGEST}; 60 if absent."
)


def _column(what: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=what)


class RevisionTrafficSerializer(serializers.Serializer[Any]):
    """Client traffic of one revision, as columns of the same length as `at`; null while it did not run."""

    name = serializers.CharField()
    model_version = serializers.IntegerField()
    role = serializers.CharField(help_text="Current role: stable, canary, retiring, retired or failed.")
    per_second = _column("Requests of clients per second.")
    error_percent = _column("Percentage of requests that failed with a server error; null without requests.")
    p99_ms = _column("99th percentile of the latency as an upper bound, in ms; null without requests.")
    replicas = _column("Number of replicas that served requests.")


class TrafficSerializer(serializers.Serializer[Any]):
    """Recent client traffic of a service."""

    service = serializers.CharField()
    stopped = serializers.BooleanField(
        help_text="Whether the service is stopped and serves no requests until it is resumed."
    )
    at = serializers.ListField(
        child=serializers.FloatField(),
        help_text="Unix seconds, oldest first; a period in which nothing ran has one time, with null in all columns.",
    )
    requests = serializers.IntegerField(help_text="Total requests of all revisions in the period.")
    revisions = RevisionTrafficSerializer(many=True)


class ServiceTrafficView(APIView):
    """Recent client traffic of a service."""

    @extend_schema(parameters=[_MINUTES], responses=TrafficSerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return time series of request rate, errors, p99 latency and replicas by revision, for charts."""
        service = selectors.service_get(namespace=namespace, name=name)
        found = selectors.traffic_history(service=service, now=timezone.now(), length=_length(request))
        return Response(TrafficSerializer(found).data)


def _length(request: Request) -> timedelta:
    text = request.query_params.get("minutes", "60")
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and 1 <= int(text) <= _LONGEST):
        raise InvalidInput(f"minutes is {text[:40]!r}; expected a number from 1 to {_LONGEST}", field="minutes")
    return timedelta(minutes=int(text))
