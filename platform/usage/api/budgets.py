"""`/api/v1/teams/{team}/budget`: what a team's keys should or may use in a month at most, and what they used."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import Place
from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from accounts.services.teams import team_get
from common.http.request_serializer import RequestSerializer
from usage.domain.budget import LEAST_COST, MOST_COST, MOST_REQUESTS, Limits
from usage.domain.month import Month
from usage.selectors.reports import prices
from usage.services.budgets import budget_set, is_used_up, limits_of, used_by


class BudgetSerializer(serializers.Serializer[Any]):
    """A team's budget of a month, and what its keys used of it this month (UTC)."""

    month = serializers.CharField()
    requests = serializers.IntegerField(allow_null=True, help_text="The most requests; null for no limit.")
    rows = serializers.IntegerField(allow_null=True, help_text="The most rows of requests; null for no limit.")
    cost = serializers.FloatField(allow_null=True, help_text="The highest cost; null for no limit.")
    enforce = serializers.BooleanField(help_text="Whether gateways refuse the team's keys once a limit is used up.")
    currency = serializers.CharField(help_text="Of the cost, as of the prices; empty where none are set.")
    used_requests = serializers.IntegerField(help_text="Requests that reached a replica.")
    used_rows = serializers.IntegerField()
    used_cost = serializers.FloatField(allow_null=True, help_text="Null without a price.")
    used_up = serializers.BooleanField(help_text="Whether a limit is used up; if enforced, the keys are refused.")


class BudgetSetSerializer(RequestSerializer[Limits]):
    """The budget to set; null is no limit. `rows` and `enforce` stay as they are where they are absent."""

    requests = serializers.IntegerField(allow_null=True, min_value=1, max_value=MOST_REQUESTS)
    cost = serializers.FloatField(allow_null=True, min_value=LEAST_COST, max_value=MOST_COST)
    rows = serializers.IntegerField(allow_null=True, min_value=1, max_value=MOST_REQUESTS, required=False)
    enforce = serializers.BooleanField(required=False)


class BudgetView(APIView):
    """The budget of a team."""

    scopes = {"PUT": Scope.ADMIN}
    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the place whose role is required; only administrators of the installation set budgets."""
        return Place.installation() if self.request.method == "PUT" else Place.team(self.kwargs["team"])

    @extend_schema(responses=BudgetSerializer)
    def get(self, _request: Request, team: str) -> Response:
        """Return the budget of the team and what its keys used this month."""
        return Response(_shown(team))

    @extend_schema(request=BudgetSetSerializer, responses=BudgetSerializer)
    def put(self, request: Request, team: str) -> Response:
        """Set the budget of the team. Webhooks get `BudgetUsed` at 80 and 100 %.

        Enforced it is a quota: at 100 % the gateway of the local cluster refuses the team's keys within a minute, with
        429, until the month ends (UTC) or the budget is raised.
        """
        asked = BudgetSetSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said, before = asked.validated_data, limits_of(team_get(name=team))
        rows, enforce = said.get("rows", before.rows), said.get("enforce", before.is_enforced)
        limits = Limits(said["requests"], said["cost"], rows, enforce)
        if limits.is_empty and "enforce" not in said:
            limits = Limits()
        budget_set(team=team, limits=limits, actor=actor_of(request), now=timezone.now())
        return Response(_shown(team))


def _shown(team: str) -> dict[str, object]:
    limits, month, currency = limits_of(team_get(name=team)), Month.of(timezone.now()), prices().currency
    used = used_by(team, month)
    return {
        "month": str(month),
        **limits.values(),
        "currency": currency,
        "used_requests": used.requests,
        "used_rows": used.rows,
        "used_cost": used.cost if currency else None,
        "used_up": is_used_up(limits, used),
    }
