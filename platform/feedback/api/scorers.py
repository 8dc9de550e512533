"""`/api/v1/services/…/feedback/scorers`: scorers of a service, which turn answers and labels into losses."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.permissions import actor_of
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from deployments import selectors
from feedback.domain.scorers import KINDS, unit_of
from feedback.models import ServiceScorer
from feedback.selectors.scorers import scorer_query
from feedback.services.scorers import scorer_delete, scorer_set


class UnitSerializer(serializers.Serializer[Any]):
    """What people read of a scorer: a loss of 0 to 1, times `scale`."""

    name = serializers.CharField()
    scale = serializers.FloatField()


class ScorerSerializer(serializers.ModelSerializer[ServiceScorer]):
    """A scorer of a service."""

    unit = serializers.SerializerMethodField()
    backfilling = serializers.SerializerMethodField(help_text="Whether labels of before it are still being scored.")
    unscored = serializers.IntegerField(help_text="Number of labels that did not fit their answer or the scorer.")
    unscored_reason = serializers.CharField(help_text="Sentence about the last of these.")

    class Meta:
        model = ServiceScorer
        fields = [
            "name",
            "kind",
            "options",
            "unit",
            "backfilling",
            "unscored",
            "unscored_reason",
            "created_at",
            "created_by",
        ]
        read_only_fields = fields

    @extend_schema_field(UnitSerializer)
    def get_unit(self, row: ServiceScorer) -> Any:
        """Return the unit in which people read its scores."""
        return UnitSerializer(unit_of(row.kind, row.options)).data

    @extend_schema_field(serializers.BooleanField())
    def get_backfilling(self, row: ServiceScorer) -> bool:
        """Return whether earlier labels are still to be scored."""
        return row.backfill_below is not None


class ScorerSetSerializer(RequestSerializer[Any]):
    """A scorer to make or to change."""

    kind = serializers.ChoiceField(choices=list(KINDS), help_text="How answers are scored.")
    options = serializers.DictField(
        default=dict,
        help_text="Options of the kind: `k` of topK, `bound` of logLoss, absoluteError and squaredError, `costs` of "
        "costMatrix, `low` and `high` of reward; `output` of those that read probabilities.",
    )


class ScorerListView(ListView):
    """Lists scorers of a service."""

    ordering = "name"

    @extend_schema(responses=ScorerSerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List the service's scorers by name."""
        service = selectors.service_get(namespace=namespace, name=name)
        return self.page(scorer_query(service=service), list, ScorerSerializer)


class ScorerView(APIView):
    """One scorer."""

    @extend_schema(request=ScorerSetSerializer, responses=ScorerSerializer)
    def put(self, request: Request, namespace: str, name: str, scorer: str) -> Response:
        """Make the scorer, or change it, which deletes its scores. It scores labels of before it too."""
        asked = ScorerSetSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = scorer_set(
            namespace=namespace,
            name=name,
            scorer=scorer,
            actor=actor_of(request),
            now=timezone.now(),
            **asked.validated_data,
        )
        return Response(ScorerSerializer(row).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, namespace: str, name: str, scorer: str) -> Response:
        """Delete the scorer with its scores."""
        scorer_delete(namespace=namespace, name=name, scorer=scorer, actor=actor_of(request), now=timezone.now())
        return Response(status=204)
