"""`/api/v1/rollouts/ID/evidence`: time series of a rollout's measurements."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.errors import InvalidInput
from deployments import selectors
from deployments.selectors.permissions import OfRollout

_ATTEMPT = OpenApiParameter("attempt", int, description="Number of the attempt, from 1; the current one if absent.")


def _column(what: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=what)


class SeriesSerializer(serializers.Serializer[Any]):
    """Time series of one metric through the steps of an attempt, as columns of equal length, oldest first."""

    metric = serializers.CharField()
    unit = serializers.CharField()
    in_background = serializers.BooleanField()
    at = serializers.ListField(child=serializers.FloatField(), help_text="Times, in Unix seconds.")
    step_index = serializers.ListField(child=serializers.IntegerField(allow_null=True))
    canary_requests = serializers.ListField(
        child=serializers.IntegerField(), help_text="Requests of the canary in the step so far."
    )
    canary = _column("Value of the canary; starts again with each step, as do stable, low and high.")
    stable = _column("Value of stable in the same period.")
    limit = _column("Limit of the canary's value.")
    low = _column("Lower bound of the canary's true value, valid at all looks.")
    high = _column("Upper bound of the canary's true value, valid at all looks.")
    evidence_percent = _column("Evidence that the limit is exceeded, in percent; 100 fails the canary.")


class EvidenceSerializer(serializers.Serializer[Any]):
    """Measurements of one attempt of a rollout."""

    rollout = serializers.IntegerField()
    attempt = serializers.IntegerField()
    began_at = serializers.DateTimeField(allow_null=True, help_text="Start of the attempt's first step.")
    series = SeriesSerializer(many=True)


class RolloutEvidenceView(OfRollout, APIView):
    """Time series of a rollout's measurements."""

    @extend_schema(parameters=[_ATTEMPT], responses=EvidenceSerializer)
    def get(self, request: Request, rollout_id: int) -> Response:
        """Return time series of all metrics of an attempt, for charts."""
        found = selectors.evidence(rollout_id=rollout_id, attempt=_attempt(request))
        return Response(EvidenceSerializer(found).data)


def _attempt(request: Request) -> int | None:
    text = request.query_params.get("attempt")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"attempt is {text[:40]!r}; expected a number from 1 on", field="attempt")
    return int(text)
