"""`/api/v1/services/NAMESPACE/NAME/feedback/quality`: quality by scorer and revision over time."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.errors import InvalidInput
from deployments import selectors
from feedback.domain.quality import Slice, Sums
from feedback.selectors.quality import (
    DAYS,
    MOST_DAYS,
    MOST_SCORES,
    Recent,
    RevisionQuality,
    ScorerQuality,
    quality_of,
    recent_of,
    scorer_named,
    scorers_of,
)

_PARAMETERS = [
    OpenApiParameter("days", int, description=f"Length of the period in days, 1 to {MOST_DAYS}; {DAYS} if absent."),
    OpenApiParameter("scorer", str, description="Only this scorer; all if absent."),
]


class ScoresSerializer(serializers.Serializer[Any]):
    """Scores of a revision, together."""

    scores = serializers.IntegerField()
    mean = serializers.FloatField(allow_null=True, help_text="Mean loss in the scorer's unit; null without scores.")


class SliceScoresSerializer(ScoresSerializer):
    """Scores of a revision in a slice."""

    revision = serializers.CharField()


class QualityHourSerializer(ScoresSerializer):
    """Scores of a revision in one hour."""

    hour = serializers.DateTimeField(help_text="Beginning of the hour of the requests.")


class RevisionQualitySerializer(ScoresSerializer):
    """Quality of one revision in the period."""

    name = serializers.CharField()
    role = serializers.CharField(
        help_text="Current role: stable, canary, retiring, retired or failed; empty if deleted."
    )
    model_version = serializers.IntegerField(allow_null=True, help_text="Null for a deleted revision.")
    low = serializers.FloatField(allow_null=True, help_text="Lower end of the 95 % confidence interval of the mean.")
    high = serializers.FloatField(allow_null=True, help_text="Upper end of that interval.")
    mean_delay_s = serializers.FloatField(allow_null=True, help_text="Mean time from a request to its label.")
    hours = QualityHourSerializer(many=True, help_text="Hours with scores, oldest first.")


class QualitySliceSerializer(serializers.Serializer[Any]):
    """Requests with one value of a parameter."""

    parameter = serializers.CharField()
    value = serializers.CharField(allow_blank=True)
    is_worse = serializers.BooleanField(
        help_text="Whether the canary is worse than stable in this slice, at 5 % for all slices together."
    )
    revisions = SliceScoresSerializer(many=True)


class ScorerQualitySerializer(serializers.Serializer[Any]):
    """Quality by one scorer."""

    scorer = serializers.CharField()
    kind = serializers.CharField()
    unit = serializers.CharField(help_text="Unit of `mean`, `low` and `high`, such as `percent wrong`.")
    recent_scores = serializers.IntegerField(
        help_text=f"Newest scores behind `delay_s` and `slices`, at most {MOST_SCORES} of all scorers."
    )
    delay_s = serializers.ListField(
        child=serializers.FloatField(),
        help_text="Median, 90th and 99th percentile of the time from a request to its label; empty without scores.",
    )
    revisions = RevisionQualitySerializer(many=True)
    slices = QualitySliceSerializer(many=True)


class QualitySerializer(serializers.Serializer[Any]):
    """Quality of a service's answers."""

    service = serializers.CharField()
    days = serializers.IntegerField()
    scorers = ScorerQualitySerializer(many=True)


class QualityView(APIView):
    """Quality of a service's answers."""

    @extend_schema(parameters=_PARAMETERS, responses=QualitySerializer)
    def get(self, request: Request, namespace: str, name: str) -> Response:
        """Return scores by scorer and revision: mean, delay, series of hours, and slices by request parameters."""
        service = selectors.service_get(namespace=namespace, name=name)
        days = days_of(request.query_params)
        scorers = scorers_of(service.pk)
        if asked := request.query_params.get("scorer", ""):
            scorers = [scorer_named(scorers, asked)]
        found = quality_of(scorers, days=days, now=timezone.now())
        document = {
            "service": str(service),
            "days": days,
            "scorers": [_scorer(each, recent_of(each, most=MOST_SCORES // len(found))) for each in found],
        }
        return Response(QualitySerializer(document).data)


def days_of(query: Mapping[str, Any]) -> int:
    """Return the days of an address; raises InvalidInput."""
    text = query.get("days", str(DAYS))
    if not (text.isascii() and text.isdecimal() and len(text) < 5):
        raise InvalidInput(f"days is {text[:40]!r}; expected a number from 1 to {MOST_DAYS}", field="days")
    return int(text)


def _scorer(each: ScorerQuality, recent: Recent) -> dict[str, Any]:
    scale = each.unit.scale
    return {
        "scorer": each.scorer.name,
        "kind": each.scorer.kind,
        "unit": each.unit.name,
        "recent_scores": recent.scores,
        "delay_s": recent.delays_s,
        "revisions": [_revision(revision, scale) for revision in each.revisions],
        "slices": [_slice(one, scale) for one in recent.slices],
    }


def _revision(each: RevisionQuality, scale: float) -> dict[str, Any]:
    low, high = each.total.interval() or (None, None)
    return {
        "name": each.name,
        "role": each.role,
        "model_version": each.version or None,
        **_scores(each.total, scale),
        "low": None if low is None else low * scale,
        "high": None if high is None else high * scale,
        "mean_delay_s": each.total.mean_delay_s,
        "hours": [{"hour": hour, **_scores(sums, scale)} for hour, sums in each.hours],
    }


def _slice(each: Slice, scale: float) -> dict[str, Any]:
    revisions = [{"revision": revision, **_scores(sums, scale)} for revision, sums in sorted(each.of.items())]
    return {
        "parameter": each.parameter,
        "value": each.value,
        "is_worse": each.is_worse,
        "revisions": revisions,
    }


def _scores(sums: Sums, scale: float) -> dict[str, Any]:
    return {"scores": sums.scores, "mean": None if sums.mean is None else sums.mean * scale}
