"""`/api/v1/services/…/recordings`: temporary recordings of client requests, started and ended by admins.

The API never returns recorded content, only its size, its time range and who is responsible for it.
"""

from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from common import durations
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from deployments import selectors
from recordings.models import Recording
from recordings.selectors.recordings import recording_get, recording_query
from recordings.services.recordings import RecordingOrder, recording_delete, recording_start, recording_stop


class RecordingSerializer(serializers.ModelSerializer[Recording]):
    """A recording without its content; `ended_at` is null while it runs."""

    service = serializers.CharField()

    class Meta:
        model = Recording
        fields = [
            "id",
            "service",
            "consent",
            "share_percent",
            "max_requests",
            "max_bytes",
            "requests",
            "bytes",
            "created_at",
            "created_by",
            "expires_at",
            "ended_at",
            "end_reason",
        ]
        read_only_fields = fields


class RecordingStartSerializer(RequestSerializer[RecordingOrder]):
    """A recording to start: its limits, and the statement of consent."""

    consent = serializers.CharField(
        max_length=2000,
        help_text="Statement of consent: why and for what purpose clients' data in requests may be stored.",
    )
    share_percent = serializers.FloatField(
        default=RecordingOrder.share_percent, help_text="Share of requests to record, above 0 and up to 100 percent."
    )
    max_requests = serializers.IntegerField(
        default=RecordingOrder.max_requests, help_text="Number of requests after which the recording ends."
    )
    max_bytes = serializers.IntegerField(
        default=RecordingOrder.max_bytes, help_text="Size in bytes after which the recording ends."
    )
    retention = serializers.CharField(
        default=durations.render(RecordingOrder.retention),
        max_length=40,
        help_text="Time from now until all recorded content is deleted, as a duration, such as `168h`.",
    )

    def order(self) -> RecordingOrder:
        """Return the order of a validated body; raises InvalidInput for an invalid duration."""
        said = dict(self.validated_data)
        return RecordingOrder(**{**said, "retention": durations.parse(said["retention"], field="retention")})


class RecordingListView(ListView):
    """Lists recordings of a service."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @extend_schema(responses=RecordingSerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List recordings of the service, newest first."""
        service = selectors.service_get(namespace=namespace, name=name)
        return self.page(recording_query(service=service), list, RecordingSerializer)

    @idempotent()
    @extend_schema(request=RecordingStartSerializer, responses={201: RecordingSerializer})
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Start storing a share of requests with stable's responses. Fails with 409 if a recording runs already."""
        asked = RecordingStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        recording = recording_start(
            namespace=namespace, name=name, order=asked.order(), actor=actor_of(request), now=timezone.now()
        )
        return Response(RecordingSerializer(recording).data, status=201)


class RecordingDetailView(APIView):
    """One recording."""

    scopes: ClassVar = {"DELETE": Scope.ADMIN}

    @extend_schema(responses=RecordingSerializer)
    def get(self, _request: Request, namespace: str, name: str, recording_id: int) -> Response:
        """Return the recording."""
        found = recording_get(namespace=namespace, name=name, recording_id=recording_id)
        return Response(RecordingSerializer(found).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace: str, name: str, recording_id: int) -> Response:
        """Delete the recording and its content, even while it runs."""
        recording_delete(
            namespace=namespace, name=name, recording_id=recording_id, actor=actor_of(request), now=timezone.now()
        )
        return Response(status=204)


class RecordingStopView(APIView):
    """Stop of a recording."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=None, responses=RecordingSerializer)
    def post(self, request: Request, namespace: str, name: str, recording_id: int) -> Response:
        """Stop the recording. Its content is kept until it expires."""
        recording = recording_stop(
            namespace=namespace, name=name, recording_id=recording_id, actor=actor_of(request), now=timezone.now()
        )
        return Response(RecordingSerializer(recording).data)
