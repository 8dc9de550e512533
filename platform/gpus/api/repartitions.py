"""`/api/v1/clusters/NAME/repartitions`: approved changes of a node's MIG layout.

For administrators, since they name and evict pods of all namespaces.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.permissions import actor_of
from accounts.domain.scopes import Scope
from clusters.selectors import cluster_get
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from gpus.api.gpus import GpuSerializer
from gpus.models import Repartition
from gpus.reconcile.repartition_change import plan_of
from gpus.selectors.repartitions import repartition_get, repartition_query
from gpus.services.inventory import cluster_nodes
from gpus.services.repartition_proposal import RepartitionOrder
from gpus.services.repartitions import repartition_abort, repartition_approve, repartition_decline, repartition_propose
from placement.inventory import cut_drawn
from placement.repartition.machine import Phase


class RepartitionSerializer(serializers.ModelSerializer[Repartition]):
    """A repartition of a node: purpose, MIG layouts before and after, and progress."""

    cluster = serializers.CharField()
    phase = serializers.ChoiceField(choices=[phase.value for phase in Phase])
    gpus = serializers.SerializerMethodField(help_text="Indices of the GPUs to repartition.")
    before = serializers.SerializerMethodField()
    after = serializers.SerializerMethodField()
    leaving = serializers.ListField(
        child=serializers.CharField(), help_text="GPU pods to evict from the node first, as NAMESPACE/NAME."
    )

    held = serializers.CharField(help_text="What blocked the last step on the node; empty if nothing did.")

    class Meta:
        model = Repartition
        fields = [
            "id",
            "cluster",
            "node",
            "product",
            "wanted",
            "why",
            "served",
            "gpus",
            "before",
            "after",
            "leaving",
            "phase",
            "since",
            "message",
            "held",
            "proposed_at",
            "proposed_by",
            "decided_at",
            "decided_by",
            "decision_reason",
            "aborted_at",
            "aborted_by",
            "abort_reason",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.ListField(child=serializers.IntegerField()))
    def get_gpus(self, row: Repartition) -> Any:
        """Return the indices of the GPUs to repartition."""
        return list(plan_of(row).gpus)

    @extend_schema_field(GpuSerializer(many=True))
    def get_before(self, row: Repartition) -> Any:
        """Return the node's GPUs before the repartition."""
        return GpuSerializer(cut_drawn(row.product, plan_of(row).before), many=True).data

    @extend_schema_field(GpuSerializer(many=True))
    def get_after(self, row: Repartition) -> Any:
        """Return the node's GPUs after the repartition."""
        return GpuSerializer(cut_drawn(row.product, plan_of(row).after), many=True).data


class RepartitionProposeSerializer(RequestSerializer[RepartitionOrder]):
    """Demand to make room for: one of `demands`, `service` (with `version`) and `file`."""

    demands = serializers.ListField(
        child=serializers.CharField(max_length=60),
        required=False,
        help_text="Slices or memory to make room for, such as `2 x 3g.40gb` or `1 x 30Gi`.",
    )
    service = serializers.CharField(
        max_length=130, required=False, help_text="Service to make room for a rollout of, as NAMESPACE/NAME."
    )
    version = serializers.CharField(
        max_length=300,
        required=False,
        help_text="Version of the rollout: `2`, `@alias` or `models:/NAME/2`; the live one if absent.",
    )
    file = serializers.DictField(required=False, help_text="Service file that did not fit.")

    def order(self) -> RepartitionOrder:
        """Return the order of a validated body."""
        said = dict(self.validated_data)
        return RepartitionOrder(**{**said, "demands": tuple(said.get("demands", ()))})


class ReasonSerializer(RequestSerializer[Any]):
    """Reason for a decision."""

    reason = serializers.CharField(max_length=1000, default="", allow_blank=True)


class RepartitionListView(ListView):
    """Lists repartitions of a cluster's nodes."""

    scopes: ClassVar = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}

    @extend_schema(responses=RepartitionSerializer(many=True))
    def get(self, _request: Request, name: str) -> Response:
        """List repartitions of the cluster's nodes, newest first."""
        cluster = cluster_get(name=name)
        return self.page(repartition_query(cluster=cluster), list, RepartitionSerializer)

    @idempotent(asks_outside=True)
    @extend_schema(request=RepartitionProposeSerializer, responses={201: RepartitionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Read the MIG layouts of the cluster's nodes and propose a repartition that fits the demand."""
        asked = RepartitionProposeSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        cluster = cluster_get(name=name)
        row = repartition_propose(
            cluster=cluster,
            order=asked.order(),
            nodes=cluster_nodes(cluster=cluster),
            actor=actor_of(request),
            now=timezone.now(),
        )
        return Response(RepartitionSerializer(row).data, status=201)


class RepartitionDetailView(APIView):
    """One repartition."""

    scopes: ClassVar = {"GET": Scope.ADMIN}

    @extend_schema(responses=RepartitionSerializer)
    def get(self, _request: Request, name: str, repartition_id: int) -> Response:
        """Return the repartition with its progress."""
        found = repartition_get(cluster=name, repartition_id=repartition_id)
        return Response(RepartitionSerializer(found).data)


class RepartitionApproveView(APIView):
    """The approval of a repartition."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent(asks_outside=True)
    @extend_schema(request=ReasonSerializer, responses=RepartitionSerializer)
    def post(self, request: Request, name: str, repartition_id: int) -> Response:
        """Approve the proposal: drain and repartition the node. Fails with 409 if the node has changed since."""
        row = repartition_get(cluster=name, repartition_id=repartition_id)
        reason = _reason(request)
        approve = partial(repartition_approve, nodes=cluster_nodes(cluster=row.cluster))
        return _moved(approve, request, name, repartition_id, reason)


class RepartitionDeclineView(APIView):
    """The decline of a repartition."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=ReasonSerializer, responses=RepartitionSerializer)
    def post(self, request: Request, name: str, repartition_id: int) -> Response:
        """Decline the proposal, with a reason."""
        return _moved(repartition_decline, request, name, repartition_id, _reason(request))


class RepartitionAbortView(APIView):
    """The abort of a running repartition."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=ReasonSerializer, responses=RepartitionSerializer)
    def post(self, request: Request, name: str, repartition_id: int) -> Response:
        """Abort the repartition and restore the node's earlier layout."""
        return _moved(repartition_abort, request, name, repartition_id, _reason(request))


def _moved(move: Callable[..., Repartition], request: Request, name: str, repartition_id: int, reason: str) -> Response:
    row = move(cluster=name, repartition_id=repartition_id, reason=reason, actor=actor_of(request), now=timezone.now())
    return Response(RepartitionSerializer(row).data)


def _reason(request: Request) -> str:
    asked = ReasonSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    return str(asked.validated_data["reason"])
