"""JSON forms of the plan of a rollout's analysis."""

from typing import Any

from rest_framework import serializers

from deployments.views.shapes import AnalysisPlan
from placement.capacity_check import Room


class DetectionSerializer(serializers.Serializer[Any]):
    """What one measurement needs to find the stated regression."""

    metric = serializers.CharField()
    regression_percent = serializers.FloatField(help_text="Of the canary's requests that go wrong.")
    requests = serializers.IntegerField(
        allow_null=True, help_text="Expected number of the canary's requests until it is failed; null is out of reach."
    )
    seconds = serializers.FloatField(allow_null=True, help_text="At the present rate, where that is known.")
    message = serializers.CharField()


class StepPlanSerializer(serializers.Serializer[Any]):
    """One step of a plan."""

    step_index = serializers.IntegerField()
    weight_percent = serializers.IntegerField()
    min_requests = serializers.IntegerField(allow_null=True)
    detections = DetectionSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())


class AnalysisPlanSerializer(serializers.Serializer[AnalysisPlan]):
    """How many requests the analysis of a rollout needs to find what each gate's `detect` states."""

    alpha = serializers.FloatField()
    traffic = serializers.CharField()
    requests_per_second = serializers.FloatField(allow_null=True)
    steps = StepPlanSerializer(many=True)


class RoomSerializer(serializers.Serializer[Room]):
    """Whether a rollout fits on the cluster's nodes at its most demanding moment."""

    fits = serializers.BooleanField(allow_null=True, help_text="Null where that is not known.")
    pods = serializers.IntegerField(help_text="How many further pods it needs then.")
    placed = serializers.IntegerField(help_text="How many of them have room.")
    message = serializers.CharField()
