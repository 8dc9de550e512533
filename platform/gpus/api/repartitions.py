"""`/api/v1/clusters/NAME/repartitions`: GPUs of a node cut anew, once somebody approved it.

The administrators' business, since pods of all namespaces are named, and have to leave.
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
    """A repartition of a node: what for, how its GPUs are cut before and after, and how far it is."""

    cluster = serializers.CharField()
    phase = serializers.ChoiceField(choices=[phase.value for phase in Phase])
    gpus = serializers.SerializerMethodField(help_text="Indices of the GPUs that are cut anew.")
    before = serializers.SerializerMethodField()
    after = serializers.SerializerMethodField()
    leaving = serializers.ListField(
        child=serializers.CharField(), help_text="GPU pods, NAMESPACE/NAME, that have to leave the node first."
    )

    held = serializers.CharField(
        help_text="What was in the way of the last turn's work on the node; empty for nothing."
    )

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
        """Return which GPUs of the node are cut anew."""
        return list(plan_of(row).gpus)

    @extend_schema_field(GpuSerializer(many=True))
    def get_before(self, row: Repartition) -> Any:
        """Return the node's GPUs as they were cut."""
        return GpuSerializer(cut_drawn(row.product, plan_of(row).before), many=True).data

    @extend_schema_field(GpuSerializer(many=True))
    def get_after(self, row: Repartition) -> Any:
        """Return them as they are to be cut."""
        return GpuSerializer(cut_drawn(row.product, plan_of(row).after), many=True).data


class RepartitionProposeSerializer(RequestSerializer[RepartitionOrder]):
    """For what a cut is looked for: one of `demands`, `service` (with `version`) and `file`."""

    demands = serializers.ListField(
        child=serializers.CharField(max_length=60), required=False, help_text="Such as `2 x 3g.40gb` or `1 x 30Gi`."
    )
    service = serializers.CharField(max_length=130, required=False, help_text="NAMESPACE/NAME, for a rollout of it.")
    version = serializers.CharField(
        max_length=300, required=False, help_text="`2`, `@alias` or `models:/NAME/2`; the one that is live if absent."
    )
    file = serializers.DictField(required=False, help_text="A service file that did not fit.")

    def order(self) -> RepartitionOrder:
        """Return the order in a body that `is_valid` found right."""
        said = dict(self.validated_data)
        return RepartitionOrder(**{**said, "demands": tuple(said.get("demands", ()))})


class ReasonSerializer(RequestSerializer[Any]):
    """Why."""

    reason = serializers.CharField(max_length=1000, default="", allow_blank=True)


class RepartitionListView(ListView):
    """Repartitions of a cluster's nodes, newest first."""

    scopes: ClassVar = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}

    @extend_schema(responses=RepartitionSerializer(many=True))
    def get(self, _request: Request, name: str) -> Response:
        """Return a page of repartitions."""
        cluster = cluster_get(name=name)
        return self.page(repartition_query(cluster=cluster), list, RepartitionSerializer)

    @idempotent(asks_outside=True)
    @extend_schema(request=RepartitionProposeSerializer, responses={201: RepartitionSerializer})
    def post(self, request: Request, name: str) -> Response:
        """Ask the cluster how its nodes are cut, and propose the cut that makes room for what is asked for."""
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
        """Return the repartition, and how far it is."""
        found = repartition_get(cluster=name, repartition_id=repartition_id)
        return Response(RepartitionSerializer(found).data)


class RepartitionApproveView(APIView):
    """The approval of a repartition."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent(asks_outside=True)
    @extend_schema(request=ReasonSerializer, responses=RepartitionSerializer)
    def post(self, request: Request, name: str, repartition_id: int) -> Response:
        """Look at the node again, and have it drained and cut; refused where it is no longer as it was."""
        row = repartition_get(cluster=name, repartition_id=repartition_id)
        reason = _reason(request)
        approve = partial(repartition_approve, nodes=cluster_nodes(cluster=row.cluster))
        return _moved(approve, request, name, repartition_id, reason)


class RepartitionDeclineView(APIView):
    """The refusal of a repartition."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=ReasonSerializer, responses=RepartitionSerializer)
    def post(self, request: Request, name: str, repartition_id: int) -> Response:
        """Leave the proposal; say why."""
        return _moved(repartition_decline, request, name, repartition_id, _reason(request))


class RepartitionAbortView(APIView):
    """The end of a repartition that is under way."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=ReasonSerializer, responses=RepartitionSerializer)
    def post(self, request: Request, name: str, repartition_id: int) -> Response:
        """Stop, and bring the node back to what it was."""
        return _moved(repartition_abort, request, name, repartition_id, _reason(request))


def _moved(move: Callable[..., Repartition], request: Request, name: str, repartition_id: int, reason: str) -> Response:
    row = move(cluster=name, repartition_id=repartition_id, reason=reason, actor=actor_of(request), now=timezone.now())
    return Response(RepartitionSerializer(row).data)


def _reason(request: Request) -> str:
    asked = ReasonSerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    return str(asked.validated_data["reason"])
