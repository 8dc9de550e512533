"""`/api/v1/services/…/feedback`: labels of a service's requests, and what became of them."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of
from common.errors import InvalidInput
from deployments import selectors
from feedback.api.label_bodies import PARSERS, CSVLabels, JSONLabels, LinesOfJSON, ParquetLabels
from feedback.api.scorers import ScorerSerializer
from feedback.domain.labels import LONGEST_ID, LONGEST_TEXT, MOST_LABELS, MOST_ROWS, MOST_VALUES, labels_of
from feedback.models import Kept
from feedback.selectors.labels import feedback_summary
from feedback.services.labels import labels_take


class LabelSerializer(serializers.Serializer[Any]):
    """The right answer to one request, a score or a reward."""

    request_id = serializers.CharField(
        max_length=LONGEST_ID, help_text="Header `x-request-id` of the answer, 1 to 128 printable characters."
    )
    value = serializers.JSONField(
        help_text=f"A finite number, a text of up to {LONGEST_TEXT} characters, or a list of up to {MOST_VALUES} of "
        "them, one for each row of the request."
    )
    given_at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When the label was known, up to now; absent: now."
    )


class LabelsSerializer(serializers.Serializer[Any]):
    """A batch of labels, which is taken whole or not at all."""

    labels = LabelSerializer(
        many=True, help_text=f"Up to {MOST_LABELS} labels; of two for one request the last counts."
    )


class TakenSerializer(serializers.Serializer[Any]):
    """What became of a batch."""

    received = serializers.IntegerField(help_text="Number of labels in the batch.")
    changed = serializers.IntegerField(help_text="Number of these that replaced another value.")
    repeated = serializers.IntegerField(help_text="Number of these that were there already.")


class StoredAnswersSerializer(serializers.ModelSerializer[Kept]):
    """How much is stored of a service's answers."""

    class Meta:
        model = Kept
        fields = ["rows", "bytes", "left_out"]
        read_only_fields = fields


class FeedbackSerializer(serializers.Serializer[Any]):
    """Labels of a service, and its scorers."""

    received = serializers.IntegerField(help_text="Number of labels that came and are stored, and of `unmatched`.")
    joined = serializers.IntegerField(help_text="Number of labels that found an answer of their request.")
    waiting = serializers.IntegerField(help_text="Number of labels without an answer so far.")
    unmatched = serializers.IntegerField(help_text="Number of labels that were deleted without an answer.")
    answers = StoredAnswersSerializer(allow_null=True, help_text="Kept answers; null where none are.")
    scorers = ScorerSerializer(many=True)


class FeedbackView(APIView):
    """Labels of a service."""

    parser_classes: ClassVar = PARSERS

    @extend_schema(responses=FeedbackSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return how many labels came, how many found their answer, and the scorers."""
        service = selectors.service_get(namespace=namespace, name=name)
        return Response(FeedbackSerializer(feedback_summary(service=service)).data)

    @idempotent(is_streamed=True)
    @extend_schema(
        request={
            JSONLabels.media_type: LabelsSerializer,
            CSVLabels.media_type: OpenApiTypes.STR,
            LinesOfJSON.media_type: OpenApiTypes.STR,
            ParquetLabels.media_type: OpenApiTypes.BINARY,
        },
        responses={202: TakenSerializer},
    )
    def post(self, request: Request, namespace: str, name: str) -> Response:
        """Take a batch of labels; one that is not valid refuses all of them. Sending labels again changes nothing."""
        most = MOST_LABELS if request.content_type.startswith(JSONLabels.media_type) else MOST_ROWS
        now = timezone.now()
        if isinstance(request.data, Mapping):  # the framework's value of an empty body
            raise InvalidInput("the body is empty; send labels", field="labels")
        labels = labels_of(request.data, now=now, most=most)
        taken = labels_take(namespace=namespace, name=name, labels=labels, actor=actor_of(request), now=now)
        return Response(TakenSerializer(taken).data, status=202)
