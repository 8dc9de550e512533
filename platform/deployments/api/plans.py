"""Serializers of the plan of a rollout's analysis."""

from typing import Any

from rest_framework import serializers

from deployments.views.shapes import AnalysisPlan
from placement.capacity_check import Room


class DetectionSerializer(serializers.Serializer[Any]):
    """Requests and time that a metric needs to detect the stated regression."""

    metric = serializers.CharField()
    regression_percent = serializers.FloatField(
        help_text="Regression to detect: percentage of the canary's requests that go wrong."
    )
    requests = serializers.IntegerField(
        allow_null=True, help_text="Expected number of canary requests until it fails; null if out of reach."
    )
    seconds = serializers.FloatField(
        allow_null=True, help_text="Expected time at the current request rate, in seconds; null if the rate is unknown."
    )
    message = serializers.CharField()


class StepPlanSerializer(serializers.Serializer[Any]):
    """One step of a plan."""

    step_index = serializers.IntegerField()
    weight_percent = serializers.IntegerField()
    min_requests = serializers.IntegerField(allow_null=True)
    detections = DetectionSerializer(many=True)
    warnings = serializers.ListField(child=serializers.CharField())


class AnalysisPlanSerializer(serializers.Serializer[AnalysisPlan]):
    """Requests that the analysis of a rollout needs to detect the regressions stated in each gate's `detect`."""

    alpha = serializers.FloatField()
    traffic = serializers.CharField()
    requests_per_second = serializers.FloatField(allow_null=True)
    steps = StepPlanSerializer(many=True)


class RoomSerializer(serializers.Serializer[Room]):
    """Whether the rollout fits on the cluster's nodes at its peak demand."""

    fits = serializers.BooleanField(allow_null=True, help_text="Whether all pods fit; null if unknown.")
    pods = serializers.IntegerField(help_text="Number of additional pods at peak demand.")
    placed = serializers.IntegerField(help_text="Number of these pods that fit.")
    message = serializers.CharField()
