"""`/api/v1/rollouts/ID/evidence`: how the evidence of a rollout came about."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.errors import InvalidInput
from deployments import selectors
from deployments.selectors.permissions import OfRollout

_ATTEMPT = OpenApiParameter("attempt", int, description="Which attempt, from 1 on; the present one when left out.")


def _column(what: str) -> serializers.ListField:
    return serializers.ListField(child=serializers.FloatField(allow_null=True), help_text=what)


class SeriesSerializer(serializers.Serializer[Any]):
    """One measurement through the steps of an attempt; the lists are columns of equal length, oldest first."""

    metric = serializers.CharField()
    unit = serializers.CharField()
    in_background = serializers.BooleanField()
    at = serializers.ListField(child=serializers.FloatField(), help_text="Unix seconds.")
    step_index = serializers.ListField(child=serializers.IntegerField(allow_null=True))
    canary_requests = serializers.ListField(child=serializers.IntegerField(), help_text="In the step until then.")
    canary = _column("Begins anew with each step, as do stable, low and high.")
    stable = _column("Of the same time.")
    limit = _column("What the canary is held against.")
    low = _column("The canary's true value is surely above; at all looks.")
    high = _column("The canary's true value is surely below; at all looks.")
    evidence_percent = _column("How far the evidence that the limit is broken has come; 100 fails the canary.")


class EvidenceSerializer(serializers.Serializer[Any]):
    """What was measured in one attempt of a rollout."""

    rollout = serializers.IntegerField()
    attempt = serializers.IntegerField()
    began_at = serializers.DateTimeField(allow_null=True, help_text="When its first step did.")
    series = SeriesSerializer(many=True)


class RolloutEvidenceView(OfRollout, APIView):
    """How the evidence came about."""

    @extend_schema(parameters=[_ATTEMPT], responses=EvidenceSerializer)
    def get(self, request: Request, rollout_id: int) -> Response:
        """Return every measurement of an attempt through time, to be drawn."""
        found = selectors.evidence(rollout_id=rollout_id, attempt=_attempt(request))
        return Response(EvidenceSerializer(found).data)


def _attempt(request: Request) -> int | None:
    text = request.query_params.get("attempt")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise InvalidInput(f"attempt is {text[:40]!r}; expected a number from 1 on", field="attempt")
    return int(text)
