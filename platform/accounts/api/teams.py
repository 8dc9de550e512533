"""`/api/v1/teams` and its subresources: members, namespaces and models."""

from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import Membership, Ownership, Team
from accounts.services import teams
from common.http.filters import Filter
from common.http.request_serializer import RequestSerializer


class TeamSerializer(serializers.ModelSerializer[Team]):
    """A team."""

    class Meta:
        model = Team
        fields = ["name", "created_at"]
        read_only_fields = fields


class TeamCreateSerializer(RequestSerializer[Team]):
    """A team to create; `name` is a DNS label."""

    name = serializers.CharField(max_length=63)


class MemberSerializer(serializers.ModelSerializer[Membership]):
    """A user's role in the team."""

    user = serializers.CharField(source="user.username")

    class Meta:
        model = Membership
        fields = ["user", "role"]
        read_only_fields = fields


class MemberSetSerializer(RequestSerializer[Membership]):
    """The role to assign to the user."""

    role = serializers.ChoiceField(choices=[role.value for role in Role])


class OwnershipSerializer(serializers.ModelSerializer[Ownership]):
    """A namespace or model that belongs to the team."""

    class Meta:
        model = Ownership
        fields = ["kind", "name"]
        read_only_fields = fields


class _OfTeam:
    """A view of one team, authorized by the caller's role in it."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        return Place.team(self.kwargs["team"])


class TeamListView(ListAPIView[Team]):
    """List the caller's teams by name; administrators of the installation see all teams."""

    serializer_class = TeamSerializer
    scopes = {"POST": Scope.ADMIN}
    ordering = "name"
    orderings = ("-name", "created_at", "-created_at")

    def get_queryset(self) -> QuerySet[Team]:
        return teams.team_query(token=caller_token(self.request))

    @idempotent()
    @extend_schema(request=TeamCreateSerializer, responses={201: TeamSerializer})
    def post(self, request: Request) -> Response:
        """Create a team."""
        asked = TeamCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        team = teams.team_create(name=asked.validated_data["name"], actor=actor_of(request), now=timezone.now())
        return Response(TeamSerializer(team).data, status=status.HTTP_201_CREATED)


class TeamDetailView(APIView):
    """One team."""

    scopes = {"DELETE": Scope.ADMIN}

    def place(self) -> Place:
        """Return the place whose role is required; only administrators of the installation delete teams."""
        return Place.installation() if self.request.method == "DELETE" else Place.team(self.kwargs["team"])

    @extend_schema(responses=TeamSerializer)
    def get(self, _request: Request, team: str) -> Response:
        """Return the team."""
        return Response(TeamSerializer(teams.team_get(name=team)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str) -> Response:
        """Delete the team with its memberships. Fails with 409 for team `default` and while it owns anything."""
        teams.team_delete(name=team, actor=actor_of(request), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class MemberListView(_OfTeam, ListAPIView[Membership]):
    """List members of the team in the order they joined."""

    serializer_class = MemberSerializer
    ordering = "id"
    orderings = ("-id",)
    filters = (Filter("role", "role", "Filter by role.", choices=tuple(Role)),)

    def get_queryset(self) -> QuerySet[Membership]:
        return teams.member_query(team=self.kwargs["team"])


class MemberDetailView(_OfTeam, APIView):
    """One member of a team."""

    scopes = {"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(request=MemberSetSerializer, responses={200: MemberSerializer, 201: MemberSerializer})
    def put(self, request: Request, team: str, user: str) -> Response:
        """Assign the user a role in the team. Creates an unknown user."""
        asked = MemberSetSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        role = Role(asked.validated_data["role"])
        row, created = teams.member_set(
            team=team, username=user, role=role, actor=actor_of(request), now=timezone.now()
        )
        answer = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(MemberSerializer(row).data, status=answer)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str, user: str) -> Response:
        """Remove the user from the team."""
        teams.member_delete(team=team, username=user, actor=actor_of(request), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class OwnedListView(_OfTeam, ListAPIView[Ownership]):
    """List namespaces and models assigned to the team."""

    serializer_class = OwnershipSerializer
    ordering = "id"
    orderings = ("-id", "name", "-name")
    filters = (Filter("kind", "kind", "Filter by kind: namespaces or models.", choices=tuple(Owned)),)

    def get_queryset(self) -> QuerySet[Ownership]:
        return teams.owned_query(team=self.kwargs["team"])


class _OwnedDetailView(APIView):
    """Assigns ownership; only administrators of the installation do so."""

    scopes = {"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}
    kind: Owned

    @extend_schema(request=None, responses={200: OwnershipSerializer, 201: OwnershipSerializer})
    def put(self, request: Request, team: str, name: str) -> Response:
        """Assign the namespace or model to the team, replacing its current owner. It need not exist yet."""
        row, created = teams.ownership_set(
            team=team, kind=self.kind, name=name, actor=actor_of(request), now=timezone.now()
        )
        answer = status.HTTP_201_CREATED if created else status.HTTP_200_OK
        return Response(OwnershipSerializer(row).data, status=answer)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, team: str, name: str) -> Response:
        """Return the namespace or model to team `default`."""
        teams.ownership_delete(team=team, kind=self.kind, name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class NamespaceDetailView(_OwnedDetailView):
    """A namespace of a team."""

    kind = Owned.NAMESPACE


class ModelDetailView(_OwnedDetailView):
    """A model of a team."""

    kind = Owned.MODEL
