"""`/api/v1/teams/{team}/quota`: limits of a team's model versions and requests, and what is used of them."""

from dataclasses import replace
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import Place
from accounts.auth.permissions import actor_of
from accounts.domain.quota import MOST_BYTES, MOST_VERSIONS, Quota
from accounts.domain.scopes import Scope
from accounts.services.quotas import TeamQuota, quota_get, quota_of, quota_set
from accounts.services.teams import team_get
from common.http.request_serializer import RequestSerializer
from integrations.clusters.base import MOST_PER_SECOND, MOST_ROWS_PER_MINUTE


class QuotaSerializer(serializers.Serializer[TeamQuota]):
    """A team's quota and its usage; null is no limit."""

    max_versions = serializers.IntegerField(source="quota.max_versions", allow_null=True)
    max_bytes = serializers.IntegerField(source="quota.max_bytes", allow_null=True)
    requests_per_second = serializers.IntegerField(source="quota.requests_per_second", allow_null=True)
    rows_per_minute = serializers.IntegerField(source="quota.rows_per_minute", allow_null=True)
    used_versions = serializers.IntegerField(source="usage.versions")
    used_bytes = serializers.IntegerField(source="usage.size_bytes")


class QuotaSetSerializer(RequestSerializer[Quota]):
    """The quota to set; null is no limit."""

    max_versions = serializers.IntegerField(allow_null=True, min_value=0, max_value=MOST_VERSIONS)
    max_bytes = serializers.IntegerField(allow_null=True, min_value=0, max_value=MOST_BYTES)
    requests_per_second = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_PER_SECOND,
        help_text="Of the team's keys, to all services together; it stays where the field is absent.",
    )
    rows_per_minute = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_ROWS_PER_MINUTE,
        help_text="Rows of these requests; it stays where the field is absent.",
    )


class QuotaView(APIView):
    """The quota of a team."""

    scopes = {"PUT": Scope.ADMIN}
    kwargs: dict[str, Any]

    def place(self) -> Place:
        """Return the place whose role is required; only administrators of the installation set quotas."""
        return Place.installation() if self.request.method == "PUT" else Place.team(self.kwargs["team"])

    @extend_schema(responses=QuotaSerializer)
    def get(self, _request: Request, team: str) -> Response:
        """Return the quota of the team and what its models use."""
        return Response(QuotaSerializer(quota_get(team=team)).data)

    @extend_schema(request=QuotaSetSerializer, responses=QuotaSerializer)
    def put(self, request: Request, team: str) -> Response:
        """Set the quota of the team. Existing versions stay; further ones that exceed it fail with 409."""
        asked = QuotaSetSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        quota = replace(quota_of(team_get(name=team)), **asked.validated_data)
        quota_set(team=team, quota=quota, actor=actor_of(request), now=timezone.now())
        return Response(QuotaSerializer(quota_get(team=team)).data)
