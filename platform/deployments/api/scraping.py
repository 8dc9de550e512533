"""The replicas' metrics pages, for a Prometheus of the team's own."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.access import visible
from accounts.permissions import caller_token
from accounts.roles import Owned
from deployments import selectors


class TargetSerializer(serializers.Serializer[Any]):
    """One group of targets (Prometheus: HTTP service discovery)."""

    targets = serializers.ListField(child=serializers.CharField())
    labels = serializers.DictField(child=serializers.CharField())


class ScrapeTargetsView(APIView):
    """What Prometheus is to scrape."""

    @extend_schema(responses=TargetSerializer(many=True))
    def get(self, request: Request) -> Response:
        """Return the metrics pages of all replicas that the caller may see, for Prometheus' `http_sd_configs`."""
        targets = selectors.scrape_targets(only=visible(caller_token(request), Owned.NAMESPACE, "namespace"))
        return Response(TargetSerializer(targets, many=True).data)
