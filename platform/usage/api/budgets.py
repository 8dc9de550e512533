"""Budgets of teams, keys and services: what they should or may use in a month, and what they used."""

from abc import ABC, abstractmethod
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
from common.http.request_serializer import RequestSerializer
from usage.auth import place_to_see, place_to_set
from usage.domain.budget import LEAST_COST, MOST_COST, MOST_REQUESTS, Limits, Owner
from usage.domain.month import Month
from usage.selectors.budgets import is_used_up, limits_of, owner_check, used_by
from usage.selectors.reports import prices
from usage.services.budgets import budget_set


class BudgetSerializer(serializers.Serializer[Any]):
    """The budget of a month of a team, a key or a service, and what was used of it this month (UTC)."""

    month = serializers.CharField()
    requests = serializers.IntegerField(allow_null=True, help_text="The most requests; null for no limit.")
    rows = serializers.IntegerField(allow_null=True, help_text="The most rows of requests; null for no limit.")
    cost = serializers.FloatField(allow_null=True, help_text="The highest cost; null for no limit.")
    enforce = serializers.BooleanField(help_text="Whether gateways refuse requests once a limit is used up.")
    currency = serializers.CharField(help_text="Of the cost, as of the prices; empty where none are set.")
    used_requests = serializers.IntegerField(help_text="Requests that reached a replica.")
    used_rows = serializers.IntegerField()
    used_cost = serializers.FloatField(allow_null=True, help_text="Null without a price.")
    used_up = serializers.BooleanField(help_text="Whether a limit is used up; if enforced, requests are refused.")


class BudgetSetSerializer(RequestSerializer[Limits]):
    """The budget to set; null is no limit. `rows` and `enforce` stay as they are where they are absent."""

    requests = serializers.IntegerField(allow_null=True, min_value=1, max_value=MOST_REQUESTS)
    cost = serializers.FloatField(allow_null=True, min_value=LEAST_COST, max_value=MOST_COST)
    rows = serializers.IntegerField(allow_null=True, min_value=1, max_value=MOST_REQUESTS, required=False)
    enforce = serializers.BooleanField(required=False)


class _BudgetView(APIView, ABC):
    """The budget of one owner."""

    scopes = {"PUT": Scope.ADMIN}
    kwargs: dict[str, Any]

    @abstractmethod
    def owner(self) -> Owner:
        """Return whose budget it is."""

    def place(self) -> Place:
        """Return the place whose role is required."""
        return (place_to_set if self.request.method == "PUT" else place_to_see)(self.owner())

    def shown(self) -> Response:
        """Return the answer: the budget as it is now."""
        owner = self.owner()
        owner_check(owner)
        limits, month, currency = limits_of(owner), Month.of(timezone.now()), prices().currency
        used = used_by(owner, month)
        return Response(
            {
                "month": str(month),
                **limits.values(),
                "currency": currency,
                "used_requests": used.requests,
                "used_rows": used.rows,
                "used_cost": used.cost if currency else None,
                "used_up": is_used_up(limits, used),
            }
        )

    def set(self, request: Request) -> Response:
        """Set the budget, and return the answer."""
        asked = BudgetSetSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        owner = self.owner()
        owner_check(owner)
        said, before = asked.validated_data, limits_of(owner)
        rows, enforce = said.get("rows", before.rows), said.get("enforce", before.is_enforced)
        limits = Limits(said["requests"], said["cost"], rows, enforce)
        if limits.is_empty and "enforce" not in said:
            limits = Limits()
        budget_set(owner=owner, limits=limits, actor=actor_of(request), now=timezone.now())
        return self.shown()


class TeamBudgetView(_BudgetView):
    """The budget of a team."""

    def owner(self) -> Owner:
        return Owner.team(self.kwargs["team"])

    @extend_schema(responses=BudgetSerializer)
    def get(self, _request: Request, team: str) -> Response:  # noqa: ARG002 - in `kwargs`
        """Return the budget of the team and what its keys used this month."""
        return self.shown()

    @extend_schema(request=BudgetSetSerializer, responses=BudgetSerializer)
    def put(self, request: Request, team: str) -> Response:  # noqa: ARG002
        """Set the budget of the team. Webhooks get `BudgetUsed` at 80 and 100 %.

        Enforced it is a quota: at 100 % the gateway of the local cluster refuses the team's keys within a minute, with
        429, until the month ends (UTC) or the budget is raised.
        """
        return self.set(request)


class KeyBudgetView(_BudgetView):
    """The budget of a key."""

    def owner(self) -> Owner:
        return Owner.key(self.kwargs["name"])

    @extend_schema(responses=BudgetSerializer)
    def get(self, _request: Request, name: str) -> Response:  # noqa: ARG002
        """Return the budget of the key and what it used this month."""
        return self.shown()

    @extend_schema(request=BudgetSetSerializer, responses=BudgetSerializer)
    def put(self, request: Request, name: str) -> Response:  # noqa: ARG002
        """Set the budget of the key, as that of a team; enforced it refuses requests with the key."""
        return self.set(request)


class ServiceBudgetView(_BudgetView):
    """The budget of a service."""

    def owner(self) -> Owner:
        return Owner.service(self.kwargs["namespace"], self.kwargs["name"])

    @extend_schema(responses=BudgetSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:  # noqa: ARG002
        """Return the budget of the service and what all its callers used this month, of its preview too."""
        return self.shown()

    @extend_schema(request=BudgetSetSerializer, responses=BudgetSerializer)
    def put(self, request: Request, namespace: str, name: str) -> Response:  # noqa: ARG002
        """Set the budget of the service, as that of a team; enforced it refuses requests of all callers to the service.

        It stays when the service is deleted, and is that of the next service of this name.
        """
        return self.set(request)
