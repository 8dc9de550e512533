"""`/api/v1/services/NAMESPACE/NAME/traffic`: what clients got of a service lately, revision by revision."""

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
_MINUTES = OpenApiParameter("minutes", int, description=f"How far back, 1 to {_LONGEST}; 60 when left out.")


def _column(what: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=what)


class RevisionTrafficSerializer(serializers.Serializer[Any]):
    """What one revision's clients got; columns are as long as `at`, null where it did not run."""

    name = serializers.CharField()
    model_version = serializers.IntegerField()
    role = serializers.CharField(help_text="As it is now: stable, canary, retiring, retired or failed.")
    per_second = _column("Requests of clients.")
    error_percent = _column("Of those, failed by the server's fault; null without any.")
    p99_ms = _column("So long took 99 % of them at most; null without any.")
    replicas = _column("How many took requests.")


class TrafficSerializer(serializers.Serializer[Any]):
    """What clients got of a service."""

    service = serializers.CharField()
    stopped = serializers.BooleanField(help_text="It takes no requests until somebody resumes it.")
    at = serializers.ListField(
        child=serializers.FloatField(),
        help_text="Unix seconds, oldest first; one in each time in which nothing ran, with null in all columns.",
    )
    requests = serializers.IntegerField(help_text="Of all revisions in this time.")
    revisions = RevisionTrafficSerializer(many=True)


class ServiceTrafficView(APIView):
    """What clients got of a service."""

    @extend_schema(parameters=[_MINUTES], responses=TrafficSerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return rate, errors, p99 and replicas of each revision through time, to be drawn."""
        service = selectors.service_get(namespace=namespace, name=name)
        found = selectors.traffic_history(service=service, now=timezone.now(), length=_length(request))
        return Response(TrafficSerializer(found).data)


def _length(request: Request) -> timedelta:
    text = request.query_params.get("minutes", "60")
    if not (text.isascii() and text.isdecimal() and len(text) < 5 and 1 <= int(text) <= _LONGEST):
        raise InvalidInput(f"minutes is {text[:40]!r}; expected a number from 1 to {_LONGEST}", field="minutes")
    return timedelta(minutes=int(text))
