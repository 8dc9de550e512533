"""`/api/v1/services/NAMESPACE/NAME/objectives`: the error budgets of a service."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from deployments import selectors
from deployments.domain.error_budget import AVAILABILITY, LATENCY
from deployments.reconcile.participants import traffic


class ErrorBudgetSerializer(serializers.Serializer[Any]):
    """One objective, and the requests since `since`."""

    objective = serializers.ChoiceField(choices=[AVAILABILITY, LATENCY])
    target_percent = serializers.FloatField(
        help_text="Percentage of requests that must succeed, or of answers that must be quick enough."
    )
    within_ms = serializers.FloatField(
        allow_null=True, help_text="Longest time of an answer that is quick enough; null for availability."
    )
    requests = serializers.IntegerField(help_text="Number of requests that count, or of answers.")
    failures = serializers.IntegerField(help_text="Number of these that failed, or were slow.")
    measured_percent = serializers.FloatField(
        allow_null=True, help_text="Percentage that met the objective, rounded down; null without requests."
    )
    burn_rate = serializers.FloatField(
        allow_null=True, help_text="Failures relative to those that the objective allows; null without requests."
    )
    left_percent = serializers.FloatField(
        allow_null=True, help_text="Percentage of the error budget that is left; null without requests."
    )


class ErrorBudgetsSerializer(serializers.Serializer[Any]):
    """Error budgets of a service over the traffic history that is kept."""

    window_days = serializers.IntegerField(source="window.days", help_text="Window of objectives, in days.")
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="Begin of the traffic history, which is shorter than the window; null without any.",
    )
    budgets = ErrorBudgetSerializer(many=True, help_text="One for each objective; empty without any.")


class ServiceObjectivesView(APIView):
    """Error budgets of a service."""

    @extend_schema(responses=ErrorBudgetsSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return what is left of the error budget of each objective, over the traffic history that is kept."""
        service = selectors.service_get(namespace=namespace, name=name)
        found = selectors.service_error_budgets(service=service, now=timezone.now(), kept=traffic.KEPT)
        return Response(ErrorBudgetsSerializer(found).data)
