"""`/api/v1/fleet/`: services whose pods are behind, and upgrades of them in waves.

For administrators, since they name and change services of all namespaces.
"""

from collections.abc import Callable
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
from common.http.filters import Filter
from common.http.listing import ListView
from common.http.request_serializer import RequestSerializer
from deployments.models import Revision
from fleet.domain.waves import Phase, State
from fleet.models import FleetUpgrade, ServiceUpgrade
from fleet.selectors.upgrades import (
    outdated_services,
    upgrade_counts,
    upgrade_get,
    upgrade_query,
    upgrade_services,
)
from fleet.services.upgrades import (
    AT_ONCE,
    MAX_AT_ONCE,
    PERCENT,
    upgrade_cancel,
    upgrade_pause,
    upgrade_resume,
    upgrade_start,
)


class OutdatedServiceSerializer(serializers.Serializer[Revision]):
    """A service whose stable revision keeps a pod template that is not the present one."""

    namespace = serializers.CharField(source="service.namespace")
    name = serializers.CharField(source="service.name")
    cluster = serializers.CharField(source="service.cluster.name")
    revision = serializers.CharField(source="name")
    template_changes = serializers.CharField(help_text="What a new revision would get instead.")


class UpgradeSerializer(serializers.ModelSerializer[FleetUpgrade]):
    """An upgrade of the fleet and its progress."""

    cluster = serializers.CharField(source="cluster.name", allow_null=True, default=None)
    phase = serializers.ChoiceField(choices=[phase.value for phase in Phase])
    services = serializers.SerializerMethodField(help_text="Number of services in each state.")

    class Meta:
        model = FleetUpgrade
        fields = [
            "id",
            "cluster",
            "namespace",
            "percent",
            "at_once",
            "phase",
            "message",
            "services",
            "created_at",
            "created_by",
            "ended_at",
        ]
        read_only_fields = fields

    @extend_schema_field(serializers.DictField(child=serializers.IntegerField()))
    def get_services(self, row: FleetUpgrade) -> Any:
        """Return the number of services in each state."""
        return {state.value: count for state, count in upgrade_counts(upgrade=row).items()}


class ServiceUpgradeSerializer(serializers.ModelSerializer[ServiceUpgrade]):
    """A service of an upgrade."""

    namespace = serializers.CharField(source="service.namespace")
    name = serializers.CharField(source="service.name")
    cluster = serializers.CharField(source="service.cluster.name")
    state = serializers.ChoiceField(choices=[state.value for state in State])
    rollout = serializers.IntegerField(source="rollout_id", allow_null=True)

    class Meta:
        model = ServiceUpgrade
        fields = ["namespace", "name", "cluster", "wave", "state", "changes", "message", "rollout", "ended_at"]
        read_only_fields = fields


class UpgradeStartSerializer(RequestSerializer[Any]):
    """Services to upgrade, and the waves."""

    cluster = serializers.CharField(
        max_length=63, default="", allow_blank=True, help_text="Only services of this cluster; empty for all."
    )
    namespace = serializers.CharField(
        max_length=63, default="", allow_blank=True, help_text="Only services of this namespace; empty for all."
    )
    percent = serializers.IntegerField(
        default=PERCENT, min_value=1, max_value=100, help_text="Share of the services in each wave after the first."
    )
    at_once = serializers.IntegerField(
        default=AT_ONCE, min_value=1, max_value=MAX_AT_ONCE, help_text="Most services upgraded at the same time."
    )


class OutdatedServiceListView(ListView):
    """Lists services that are behind."""

    scopes: ClassVar = {"GET": Scope.ADMIN}
    filters = (
        Filter("cluster", "service__cluster__name", "Filter by cluster."),
        Filter("namespace", "service__namespace", "Filter by namespace."),
    )

    @extend_schema(responses=OutdatedServiceSerializer(many=True))
    def get(self, _request: Request) -> Response:
        """List running services whose pod template differs from that of a new revision."""
        return self.page(outdated_services(), list, OutdatedServiceSerializer)


class UpgradeListView(ListView):
    """Lists and starts upgrades."""

    scopes: ClassVar = {"GET": Scope.ADMIN, "POST": Scope.ADMIN}

    @extend_schema(responses=UpgradeSerializer(many=True))
    def get(self, _request: Request) -> Response:
        """List upgrades of the fleet, newest first."""
        return self.page(upgrade_query(), list, UpgradeSerializer)

    @idempotent()
    @extend_schema(request=UpgradeStartSerializer, responses={201: UpgradeSerializer})
    def post(self, request: Request) -> Response:
        """Start an upgrade of the services that are behind, in waves. Fails with 409 if one is open."""
        asked = UpgradeStartSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        row = upgrade_start(**asked.validated_data, actor=actor_of(request), now=timezone.now())
        return Response(UpgradeSerializer(upgrade_get(upgrade_id=row.pk)).data, status=201)


class UpgradeDetailView(APIView):
    """One upgrade."""

    scopes: ClassVar = {"GET": Scope.ADMIN}

    @extend_schema(responses=UpgradeSerializer)
    def get(self, _request: Request, upgrade_id: int) -> Response:
        """Return the upgrade with its progress."""
        return Response(UpgradeSerializer(upgrade_get(upgrade_id=upgrade_id)).data)


class UpgradeServiceListView(ListView):
    """Lists the services of an upgrade."""

    scopes: ClassVar = {"GET": Scope.ADMIN}
    ordering: ClassVar[str] = "id"

    @extend_schema(responses=ServiceUpgradeSerializer(many=True))
    def get(self, _request: Request, upgrade_id: int) -> Response:
        """List the services of the upgrade in the order of their waves."""
        rows = upgrade_services(upgrade=upgrade_get(upgrade_id=upgrade_id))
        return self.page(rows, list, ServiceUpgradeSerializer)


class UpgradePauseView(APIView):
    """The pause of an upgrade."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=None, responses=UpgradeSerializer)
    def post(self, request: Request, upgrade_id: int) -> Response:
        """Start no further service; rollouts in progress go on."""
        return _moved(upgrade_pause, request, upgrade_id)


class UpgradeResumeView(APIView):
    """The resumption of an upgrade."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=None, responses=UpgradeSerializer)
    def post(self, request: Request, upgrade_id: int) -> Response:
        """Resume a paused upgrade without the services that failed."""
        return _moved(upgrade_resume, request, upgrade_id)


class UpgradeCancelView(APIView):
    """The cancellation of an upgrade."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    @idempotent()
    @extend_schema(request=None, responses=UpgradeSerializer)
    def post(self, request: Request, upgrade_id: int) -> Response:
        """Cancel the upgrade; rollouts in progress go on."""
        return _moved(upgrade_cancel, request, upgrade_id)


def _moved(move: Callable[..., FleetUpgrade], request: Request, upgrade_id: int) -> Response:
    move(upgrade_id=upgrade_id, actor=actor_of(request), now=timezone.now())
    return Response(UpgradeSerializer(upgrade_get(upgrade_id=upgrade_id)).data)
