"""`/api/v1/rollouts/ID/comparison`: differences between a shadow's responses and stable's."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments import selectors
from deployments.api.serializers import MeasurementSerializer
from deployments.selectors.permissions import OfRollout

_Values = serializers.Serializer[Any]


class DecadeSerializer(_Values):
    """Number of differences from 10^power up to ten times that."""

    power = serializers.IntegerField()
    count = serializers.IntegerField()


class SpreadSerializer(_Values):
    """Distribution of differences; a quantile is null without a size, such as NaN on one side."""

    rows = serializers.IntegerField()
    zeros = serializers.IntegerField()
    sizeless = serializers.IntegerField()
    p50 = serializers.FloatField(allow_null=True)
    p90 = serializers.FloatField(allow_null=True)
    p99 = serializers.FloatField(allow_null=True)
    largest = serializers.FloatField()
    decades = DecadeSerializer(many=True)


class OutputComparisonSerializer(_Values):
    """Comparison of one output over all compared responses; `angle` is 1 - cosine."""

    name = serializers.CharField()
    datatype = serializers.CharField()
    kinds = serializers.DictField(child=serializers.IntegerField())
    absolute = SpreadSerializer(allow_null=True)
    relative = SpreadSerializer(allow_null=True)
    angle = SpreadSerializer(allow_null=True)
    rankings = serializers.IntegerField()
    flips = serializers.IntegerField()
    rankings_k = serializers.IntegerField()
    flips_k = serializers.IntegerField()


class WorstSerializer(_Values):
    """A request with both responses, shortened; an error response is {"error": sentence}."""

    request_id = serializers.CharField()
    at = serializers.DateTimeField()
    outcome = serializers.CharField()
    disagreement = serializers.FloatField()
    excess = serializers.FloatField()
    message = serializers.CharField()
    inputs = serializers.DictField()
    stable = serializers.DictField()
    shadow = serializers.DictField()


class ComparisonSerializer(_Values):
    """The comparison of one step."""

    step_index = serializers.IntegerField()
    attempt = serializers.IntegerField()
    started_at = serializers.DateTimeField()
    compared_at = serializers.DateTimeField(allow_null=True)
    pairs = serializers.IntegerField(source="summary.pairs")
    differing = serializers.IntegerField(source="summary.differing")
    rows = serializers.IntegerField(source="summary.rows")
    agreeing_rows = serializers.IntegerField(source="summary.agreeing_rows")
    agreement_percent = serializers.FloatField(source="summary.agreement_percent", allow_null=True)
    low_percent = serializers.FloatField(source="summary.low_percent")
    high_percent = serializers.FloatField(source="summary.high_percent")
    measurement = MeasurementSerializer(source="summary.measurement")
    outcomes = serializers.DictField(source="summary.outcomes", child=serializers.IntegerField())
    stable_alone = serializers.IntegerField()
    shadow_alone = serializers.IntegerField()
    unreadable = serializers.IntegerField(source="summary.unreadable")
    unreadable_message = serializers.CharField(source="summary.unreadable_message")
    strangers = serializers.IntegerField(source="summary.strangers")
    outputs = OutputComparisonSerializer(source="summary.outputs", many=True)
    worst = WorstSerializer(source="summary.worst", many=True)


class ComparisonsSerializer(_Values):
    """Comparisons of the rollout's current attempt, one for each step that has one."""

    rollout = serializers.IntegerField()
    steps = ComparisonSerializer(many=True)


class RolloutComparisonView(OfRollout, APIView):
    """Differences between the shadow's responses and stable's."""

    @extend_schema(responses=ComparisonsSerializer)
    def get(self, _request: Request, rollout_id: int) -> Response:
        """Return comparisons of the rollout's current attempt, with excerpts of the requests that differ most."""
        steps = selectors.comparison_views(rollout_id=rollout_id)
        return Response(ComparisonsSerializer({"rollout": rollout_id, "steps": steps}).data)
