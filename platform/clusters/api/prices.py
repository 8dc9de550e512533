"""`/api/v1/clusters/NAME/prices`: hourly prices of replicas on a cluster."""

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from clusters.models import Cluster
from clusters.selectors import cluster_get, prices_of
from clusters.services.prices import cluster_prices_set


class PricesSerializer(serializers.Serializer[Any]):
    """Hourly prices of replicas."""

    currency = serializers.CharField(
        allow_blank=True, required=False, help_text="Currency code, such as EUR; empty without prices."
    )
    per_hour = serializers.DictField(
        child=serializers.FloatField(),
        help_text="Hourly price of a replica, by its GPU or slice, such as `nvidia.com/mig-1g.10gb`; `replica` is the "
        "price without a GPU.",
    )


class ClusterPricesView(APIView):
    """The prices of a cluster, for administrators of the installation."""

    scopes = {"GET": Scope.ADMIN, "PUT": Scope.ADMIN}

    @extend_schema(responses=PricesSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the cluster's hourly prices."""
        return _answer(cluster_get(name=name))

    @extend_schema(request=PricesSerializer, responses=PricesSerializer)
    def put(self, request: Request, name: str) -> Response:
        """Replace all prices. Resources left out lose their price."""
        row = cluster_prices_set(name=name, document=request.data, actor=actor_of(request), now=timezone.now())
        return _answer(row)


def _answer(cluster: Cluster) -> Response:
    return Response(PricesSerializer(prices_of(cluster)).data)
