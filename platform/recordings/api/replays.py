"""`/api/v1/services/…/replays`: replays of recordings against a version outside of traffic, with comparison."""

from typing import Any

from django.db import transaction
from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of, caller_token
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from deployments import selectors
from deployments.api.comparison import OutputComparisonSerializer, WorstSerializer
from deployments.api.serializers import MeasurementSerializer
from deployments.selectors.permissions import require_model_use
from jobs.domain.attempts import Status
from jobs.services import hints
from recordings import tasks
from recordings.models import Replay
from recordings.selectors.replays import replay_get, replay_query, replay_summary
from recordings.services.replays import replay_start


class ReplayComparisonSerializer(serializers.Serializer[Any]):
    """Differences from the recorded responses; `shadow` is the version under replay."""

    pairs = serializers.IntegerField()
    differing = serializers.IntegerField()
    rows = serializers.IntegerField()
    agreeing_rows = serializers.IntegerField()
    agreement_percent = serializers.FloatField(allow_null=True)
    low_percent = serializers.FloatField()
    high_percent = serializers.FloatField()
    measurement = MeasurementSerializer()
    outcomes = serializers.DictField(child=serializers.IntegerField())
    unreadable = serializers.IntegerField()
    unreadable_message = serializers.CharField()
    outputs = OutputComparisonSerializer(many=True)
    worst = WorstSerializer(many=True)


class ReplaySerializer(serializers.ModelSerializer[Replay]):
    """A replay; `recording` is null once deleted, `comparison` until the replay is DONE."""

    service = serializers.CharField()
    version = serializers.IntegerField(source="model_version.number")
    recording = serializers.IntegerField(source="recording_id", allow_null=True)
    status = serializers.ChoiceField(choices=[status.value for status in Status])
    comparison = serializers.SerializerMethodField()

    class Meta:
        model = Replay
        fields = [
            "id",
            "service",
            "recording",
            "version",
            "status",
            "reason",
            "done",
            "total",
            "comparison",
            "created_at",
            "created_by",
            "finished_at",
        ]
        read_only_fields = fields

    @extend_schema_field(ReplayComparisonSerializer(allow_null=True))
    def get_comparison(self, row: Replay) -> Any:
        """Return the comparison of the responses; None until DONE."""
        return ReplayComparisonSerializer(replay_summary(row)).data if row.status == Status.DONE else None


class ReplayStartSerializer(RequestSerializer[Replay]):
    """A replay to start: recording and version."""

    version = serializers.CharField(
        max_length=300, help_text="Version to replay against: `2`, `@alias` or `models:/NAME/2`."
    )
    recording = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=2**31 - 1,
        help_text="Id of the recording; the newest if absent or null.",
    )
    comparison = serializers.DictField(
        required=False, help_text="Criteria of the comparison, as in a policy's `analysis.comparison`."
    )


class ReplayListView(ListView):
    """Lists replays of a service."""

    @extend_schema(responses=ReplaySerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List replays of the service, newest first."""
        service = selectors.service_get(namespace=namespace, name=name)
        return self.page(replay_query(service=service), list, ReplaySerializer)

    @idempotent()
    @extend_schema(request=ReplayStartSerializer, responses={201: ReplaySerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Replay a recording against a version, isolated from clients, and compare the responses."""
        asked = ReplayStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said = asked.validated_data
        require_model_use(caller_token(request), said["version"])
        row = replay_start(
            namespace=namespace,
            name=name,
            recording=said.get("recording"),
            version=said["version"],
            terms=said.get("comparison"),
            actor=actor_of(request),
            now=timezone.now(),
        )
        transaction.on_commit(lambda: hints.send(tasks.replay, row.pk))  # with an idempotency key one is open here
        return Response(ReplaySerializer(row).data, status=201)


class ReplayDetailView(APIView):
    """One replay."""

    @extend_schema(responses=ReplaySerializer)
    def get(self, _request: Request, namespace: str, name: str, replay_id: int) -> Response:
        """Return the replay with its progress and, once DONE, the comparison of the responses."""
        found = replay_get(namespace=namespace, name=name, replay_id=replay_id)
        return Response(ReplaySerializer(found).data)
