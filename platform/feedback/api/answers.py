"""`/api/v1/services/…/feedback/answers`: which of a service's answers are kept for feedback."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.permissions import actor_of
from common.http.request_serializer import RequestSerializer
from feedback.models import Kept
from feedback.selectors.answers import kept_get, problem_of
from feedback.services.answers import (
    MAX_BYTES,
    MAX_DAYS,
    MAX_NAME,
    MAX_OUTPUTS,
    MAX_PARAMETERS,
    MAX_ROWS,
    KeepOrder,
    answers_keep,
    answers_stop,
)


class KeptSerializer(serializers.ModelSerializer[Kept]):
    """What is kept of a service's answers, and how much of it there is."""

    service = serializers.CharField()
    active = serializers.SerializerMethodField(help_text="Whether further answers are kept.")
    outputs = serializers.ListField(child=serializers.CharField())
    parameters = serializers.ListField(child=serializers.CharField())
    problem = serializers.SerializerMethodField(help_text="Why further answers are left out; empty while none are.")

    class Meta:
        model = Kept
        fields = [
            "service",
            "active",
            "share_percent",
            "days",
            "max_rows",
            "max_bytes",
            "output",
            "outputs",
            "keeps_inputs",
            "parameters",
            "rows",
            "bytes",
            "left_out",
            "problem",
            "created_at",
            "created_by",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.BooleanField())
    def get_active(self, kept: Kept) -> bool:
        """Return whether further answers are kept."""
        return kept.service.kept_percent > 0

    @extend_schema_field(serializers.CharField())
    def get_problem(self, kept: Kept) -> str:
        """Return why further answers are left out."""
        return problem_of(kept)


def _names(most: int, what: str) -> Any:
    child = serializers.CharField(max_length=MAX_NAME)
    return serializers.ListField(child=child, default=list, max_length=most, help_text=what)


class KeepSerializer(RequestSerializer[KeepOrder]):
    """What to keep; absent fields have their defaults."""

    share_percent = serializers.FloatField(
        default=KeepOrder.share_percent, help_text="Share of requests whose answers are kept, above 0 and up to 100."
    )
    days = serializers.IntegerField(
        default=KeepOrder.days,
        help_text=f"Days after which an answer is deleted with its label and scores, 1 to {MAX_DAYS}.",
    )
    max_rows = serializers.IntegerField(
        default=KeepOrder.max_rows,
        help_text=f"Number of answers beyond which further ones are left out, to {MAX_ROWS}.",
    )
    max_bytes = serializers.IntegerField(
        default=KeepOrder.max_bytes, help_text=f"Size in bytes beyond which answers are left out, to {MAX_BYTES}."
    )
    output = serializers.CharField(
        default="",
        allow_blank=True,
        max_length=MAX_NAME,
        help_text="Output whose top class and score are kept; empty for the first one.",
    )
    outputs = _names(MAX_OUTPUTS, "Outputs whose values are kept, encrypted.")
    keeps_inputs = serializers.BooleanField(default=False, help_text="Whether inputs' values are kept too, encrypted.")
    parameters = _names(MAX_PARAMETERS, "Request parameters that are kept, as text, to slice quality by.")

    def order(self) -> KeepOrder:
        """Return the order of a validated body."""
        said = dict(self.validated_data)
        return KeepOrder(**{**said, "outputs": tuple(said["outputs"]), "parameters": tuple(said["parameters"])})


class KeptAnswersView(APIView):
    """The answers of a service that are kept."""

    @extend_schema(responses=KeptSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return what is kept of the service's answers; 404 where nothing is."""
        return Response(KeptSerializer(kept_get(namespace=namespace, name=name)).data)

    @extend_schema(request=KeepSerializer, responses=KeptSerializer)
    def put(self, request: Request, namespace: str, name: str) -> Response:
        """Keep a share of the service's answers from now on, or change what is kept of further ones."""
        asked = KeepSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        answers_keep(namespace=namespace, name=name, order=asked.order(), actor=actor_of(request), now=timezone.now())
        return Response(KeptSerializer(kept_get(namespace=namespace, name=name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace: str, name: str) -> Response:
        """Keep no further answers. What is stored is deleted after its days."""
        answers_stop(namespace=namespace, name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=204)
