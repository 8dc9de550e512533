"""`/api/v1/model-pools`: pools, what their replicas report, and the services in them."""

from dataclasses import asdict
from functools import partial
from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import visible
from accounts.auth.permissions import caller_token
from accounts.domain.roles import Owned
from common.http.filters import Filter
from common.http.listing import ListView
from deployments.models import InferenceService
from pools.domain.figures import ModelUse, PoolFigures, slowest
from pools.selectors import PoolMember, model_pool, pool_figures, pool_get, pool_members, pool_query, with_copies

_MODELS_SHOWN, _SLOWEST_SHOWN = 100, 10


class PoolSerializer(serializers.Serializer[InferenceService]):
    """A model pool."""

    namespace = serializers.CharField()
    name = serializers.CharField()
    cluster = serializers.CharField(source="cluster.name")
    phase = serializers.CharField()
    reason = serializers.CharField()
    services = serializers.IntegerField(source="members", help_text="Number of the services in it.")
    memory_budget_bytes = serializers.SerializerMethodField(
        help_text="Memory that the models of each replica may take."
    )
    shared_with = serializers.SerializerMethodField(
        help_text="Namespaces beside its own whose services may be in it; `*` for all."
    )

    def get_memory_budget_bytes(self, pool: InferenceService) -> int:
        """Return the memory that the models of a replica may take."""
        return model_pool(pool).memory_budget_bytes

    def get_shared_with(self, pool: InferenceService) -> list[str]:
        """Return the namespaces that may use it."""
        return list(model_pool(pool).shared_with)


class ModelUseSerializer(serializers.Serializer[ModelUse]):
    """A model version in memory, or used in the last ten minutes."""

    namespace = serializers.CharField()
    service = serializers.CharField()
    version = serializers.CharField()
    memory_bytes = serializers.IntegerField(help_text="Memory of all its copies.")
    copies = serializers.IntegerField(help_text="Number of replicas that have it in memory.")
    requests = serializers.IntegerField(help_text="Requests answered without error.")
    load_ms = serializers.FloatField(
        allow_null=True, help_text="Longest time from a first request until it answered; null where unknown."
    )


class PoolFiguresSerializer(serializers.Serializer[PoolFigures]):
    """What replicas of a pool report, since each one's start."""

    hits = serializers.IntegerField(help_text="Requests whose model was loaded.")
    misses = serializers.IntegerField(help_text="Requests that waited for a load.")
    hit_percent = serializers.FloatField(allow_null=True)
    loads = serializers.IntegerField()
    load_p99_ms = serializers.FloatField(
        allow_null=True, help_text="Upper bound of the duration of 99 % of the loads; null without loads."
    )
    load_failures = serializers.DictField(child=serializers.IntegerField(), help_text="Failed loads by reason.")
    evictions = serializers.IntegerField(help_text="Models unloaded to make room for others.")
    loaded_models = serializers.IntegerField()
    memory_bytes = serializers.IntegerField(help_text="Memory of the loaded models.")
    memory_limit_bytes = serializers.IntegerField()
    waiting = serializers.IntegerField(help_text="Requests that wait for a load now.")


class ReplicaFiguresSerializer(PoolFiguresSerializer):
    """The figures of one replica."""

    replica = serializers.CharField()


class PoolDetailSerializer(PoolSerializer):
    """A model pool with its figures."""

    figures = PoolFiguresSerializer()
    replicas = ReplicaFiguresSerializer(many=True)
    models = ModelUseSerializer(many=True, help_text=f"At most {_MODELS_SHOWN}, the largest first.")
    slowest = ModelUseSerializer(many=True, help_text="Models whose loads took the longest.")
    advice = serializers.ListField(
        child=serializers.CharField(), help_text="What to change of the pool, a sentence each; empty if its models fit."
    )
    problem = serializers.CharField(help_text="Why some figures are missing; empty where none are.")


class PoolMemberSerializer(serializers.Serializer[PoolMember]):
    """A service in a pool."""

    namespace = serializers.CharField(source="service.namespace")
    name = serializers.CharField(source="service.name")
    phase = serializers.CharField(source="service.phase")
    reason = serializers.CharField(source="service.reason")
    copies = serializers.IntegerField(
        help_text="Number of replicas that are to answer for it; several where its model is hot."
    )


class PoolListView(ListView):
    """Lists model pools."""

    ordering: ClassVar[str] = "id"
    filters = (
        Filter("namespace", "namespace", "Filter by namespace."),
        Filter("cluster", "cluster__name", "Filter by cluster."),
    )

    @extend_schema(responses=PoolSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the model pools that the caller may see, in order of creation."""
        pools = pool_query().filter(visible(caller_token(request), Owned.NAMESPACE, "namespace"))
        return self.page(pools, list, PoolSerializer)


class PoolDetailView(APIView):
    """One model pool."""

    @extend_schema(responses=PoolDetailSerializer)
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """Return the pool with what its replicas report now. Its file is applied as that of a service."""
        pool = pool_get(namespace=namespace, name=name)
        seen = pool_figures(pool, now=timezone.now())
        models = seen.total.models
        return Response(
            {
                **PoolSerializer(pool).data,
                "figures": PoolFiguresSerializer(seen.total).data,
                "replicas": [{"replica": name, **PoolFiguresSerializer(its).data} for name, its in seen.replicas],
                "models": list(map(asdict, models[:_MODELS_SHOWN])),
                "slowest": list(map(asdict, slowest(models, _SLOWEST_SHOWN))),
                "advice": list(seen.advice),
                "problem": seen.problem,
            }
        )


class PoolServiceListView(ListView):
    """Lists the services in a pool."""

    ordering: ClassVar[str] = "id"
    filters = (Filter("namespace", "namespace", "Filter by namespace."), Filter("phase", "phase", "Filter by phase."))

    @extend_schema(responses=PoolMemberSerializer(many=True))
    def get(self, _request: Request, namespace: str, name: str) -> Response:
        """List the services in the pool, those of other namespaces too, in order of creation."""
        pool = pool_get(namespace=namespace, name=name)
        return self.page(pool_members(pool), partial(with_copies, pool), PoolMemberSerializer)
