"""`/api/v1/teams/TEAM/demand` and `/api/v1/namespaces/NAMESPACE/demand`: demands on rollouts and approvals."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import Place
from accounts.auth.permissions import actor_of
from accounts.domain.demand import MOST_APPROVALS, MOST_POLICIES, Demand
from accounts.domain.scopes import Scope
from accounts.selectors.demands import demand_get
from accounts.services.demands import namespace_demand_set, team_demand_set
from accounts.services.teams import team_get
from common.http.request_serializer import RequestSerializer


class DemandSerializer(serializers.Serializer[Demand]):
    """Demand of a team or a namespace; without any, the lists are empty and the values 0 and false."""

    of = serializers.CharField(help_text="Who demands it, such as `team red`.")
    policies = serializers.ListField(child=serializers.CharField())
    approvals = serializers.IntegerField()
    signed_in = serializers.BooleanField()
    digests = serializers.BooleanField()


class DemandSetSerializer(RequestSerializer[Demand]):
    """The demand to set; what is absent is not demanded."""

    policies = serializers.ListField(
        child=serializers.CharField(max_length=63),
        max_length=MOST_POLICIES,
        required=False,
        default=list,
        help_text="Policies that services may use; empty for any.",
    )
    approvals = serializers.IntegerField(
        min_value=0,
        max_value=MOST_APPROVALS,
        required=False,
        default=0,
        help_text="Approvals that the policy of a rollout must ask for, at least.",
    )
    signed_in = serializers.BooleanField(
        required=False, default=False, help_text="Whether approvers must have signed in at the provider themselves."
    )
    digests = serializers.BooleanField(
        required=False, default=False, help_text="Whether service files must name images by their digest."
    )

    def demand(self, of: str) -> Demand:
        """Return the demand; raises ValidationError."""
        self.is_valid(raise_exception=True)
        asked: dict[str, Any] = self.validated_data
        return Demand(of, tuple(asked["policies"]), asked["approvals"], asked["signed_in"], asked["digests"])


class TeamDemandView(APIView):
    """What a team demands of rollouts in all its namespaces, and of approvals."""

    scopes: ClassVar = {"PUT": Scope.ADMIN}

    def place(self) -> Place:
        """Return the team."""
        return Place.team(self.kwargs["team"])

    @extend_schema(responses=DemandSerializer)
    def get(self, _request: Request, team: str) -> Response:
        """Return the demand."""
        return Response(DemandSerializer(demand_get(team=team_get(name=team).name)).data)

    @extend_schema(request=DemandSetSerializer, responses=DemandSerializer)
    def put(self, request: Request, team: str) -> Response:
        """Set the demand. Services that break it go on serving; their next change or rollout is refused."""
        demand = DemandSetSerializer(data=request.data).demand(f"team {team}")
        set_to = team_demand_set(team=team, demand=demand, actor=actor_of(request), now=timezone.now())
        return Response(DemandSerializer(set_to).data)


class NamespaceDemandView(APIView):
    """What a namespace demands of its rollouts, beside the team that owns it."""

    scopes: ClassVar = {"PUT": Scope.ADMIN}

    @extend_schema(responses=DemandSerializer)
    def get(self, _request: Request, namespace: str) -> Response:
        """Return the demand."""
        return Response(DemandSerializer(demand_get(namespace=namespace)).data)

    @extend_schema(request=DemandSetSerializer, responses=DemandSerializer)
    def put(self, request: Request, namespace: str) -> Response:
        """Set the demand. Services that break it go on serving; their next change or rollout is refused."""
        demand = DemandSetSerializer(data=request.data).demand(f"namespace {namespace}")
        set_to = namespace_demand_set(namespace=namespace, demand=demand, actor=actor_of(request), now=timezone.now())
        return Response(DemandSerializer(set_to).data)
