"""`/api/v1/services/…/feedback/drift`: shapes of a service's inputs and answers, against their references."""

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of
from feedback.domain.drift.features import MOST_FEATURES
from feedback.selectors.drift import Shapes, drift_shapes
from feedback.services.drift import drift_accept

_STATES = ["first values", "no shape", "learning", "watched", "drifted"]


class DataDriftBinSerializer(serializers.Serializer[object]):
    """A bin of a feature: a range of its numbers, or a class."""

    words = serializers.CharField()
    reference_percent = serializers.FloatField(allow_null=True)
    present_percent = serializers.FloatField(allow_null=True)


class DataDriftFeatureSerializer(serializers.Serializer[Shapes]):
    """A feature of a service's requests or answers, with the shape of its reference and its present one."""

    name = serializers.CharField()
    source = serializers.ChoiceField(["input", "answer"])  # type: ignore[assignment]  # a field
    kind = serializers.ChoiceField(["number", "class"])
    state = serializers.ChoiceField(_STATES)
    since = serializers.DateTimeField(help_text="When its reference began.")
    alarm_at = serializers.DateTimeField(allow_null=True, help_text="When drift was detected; null without.")
    rows = serializers.IntegerField(help_text="Rows of the reference; so far, while it is learned.")
    evidence_percent = serializers.FloatField(help_text="How far the evidence is on its way to an alarm.")
    outliers_percent = serializers.FloatField(help_text="Share of the present outside of the first values' range.")
    sentence = serializers.CharField()
    canary = serializers.CharField(help_text="How a canary differs from stable; empty where that is not proved.")
    bins = DataDriftBinSerializer(many=True)


class DataDriftSerializer(serializers.Serializer[object]):
    """The features of a service, the strongest evidence first."""

    features = DataDriftFeatureSerializer(many=True)


class DataDriftAcceptSerializer(serializers.Serializer[object]):
    """The features whose present is accepted."""

    features = serializers.ListField(
        child=serializers.CharField(max_length=200),
        default=list,
        max_length=MOST_FEATURES,
        help_text="Names of features; empty for all that have drifted.",
    )


class DriftView(APIView):
    """Drift of a service's inputs and answers."""

    @extend_schema(responses=DataDriftSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return the features of the service's requests and answers, the strongest evidence of drift first."""
        return Response(DataDriftSerializer({"features": drift_shapes(namespace=namespace, name=name)}).data)


class DriftAcceptView(APIView):
    """Acceptance of what has drifted."""

    @idempotent()
    @extend_schema(request=DataDriftAcceptSerializer, responses=DataDriftSerializer)
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Make the present the reference of features that have drifted, or of those named; their alarms end."""
        asked = DataDriftAcceptSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        features = asked.validated_data["features"]
        drift_accept(namespace=namespace, name=name, features=features, actor=actor_of(request), now=timezone.now())
        return Response(DataDriftSerializer({"features": drift_shapes(namespace=namespace, name=name)}).data)
