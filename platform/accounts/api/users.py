"""`/api/v1/users`: lists, disables and enables users. For administrators of the installation."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.scopes import Scope
from accounts.models import User
from accounts.selectors.users import user_get, user_query
from accounts.services.identities import identity_forget
from accounts.services.invitations import CreatedInvitation, invitation_create, invitation_url
from accounts.services.oidc_users import MOST_REASON, user_switch_by
from common.http.filters import Filter
from common.http.request_serializer import RequestSerializer


class UserSerializer(serializers.ModelSerializer[User]):
    """A user; `provider` is the issuer of the user's identity provider account, null for users with tokens only."""

    name = serializers.CharField(source="username")
    active = serializers.BooleanField(source="is_active", help_text="Whether the user is enabled.")
    roles = serializers.SerializerMethodField(help_text="Roles of the user, by team.")
    provider = serializers.SerializerMethodField()
    provider_checked_at = serializers.SerializerMethodField(
        help_text="When the identity provider last confirmed the account; null if it never did."
    )
    provider_ended_at = serializers.SerializerMethodField(
        help_text="When the identity provider stopped confirming the account; its tokens are refused since then."
    )
    last_seen_at = serializers.DateTimeField(
        allow_null=True, help_text="Last use of a token or session; null if no stored one was used."
    )
    created_at = serializers.DateTimeField(source="date_joined")

    class Meta:
        model = User
        fields = [
            "name",
            "active",
            "roles",
            "provider",
            "provider_checked_at",
            "provider_ended_at",
            "last_seen_at",
            "created_at",
        ]
        read_only_fields = fields

    def get_roles(self, user: User) -> dict[str, str]:
        """Return the roles by team."""
        return {row.team.name: row.role for row in user.memberships.all()}

    def get_provider(self, user: User) -> str | None:
        """Return the issuer; None without an account of an identity provider."""
        return user.identity.issuer if hasattr(user, "identity") else None

    def get_provider_checked_at(self, user: User) -> datetime | None:
        """Return the last confirmation; None without one."""
        return user.identity.checked_at if hasattr(user, "identity") else None

    def get_provider_ended_at(self, user: User) -> datetime | None:
        """Return the end of confirmations; None without one."""
        return user.identity.ended_at if hasattr(user, "identity") else None


class UserSwitchSerializer(RequestSerializer[User]):
    """Whether to enable the user, and the reason for the audit log."""

    active = serializers.BooleanField()
    reason = serializers.CharField(max_length=MOST_REASON)


class _OfInstallation:
    """A view for administrators of the installation."""

    def place(self) -> Place:
        return Place.installation()


class UserListView(_OfInstallation, ListAPIView[User]):
    """List users by name."""

    serializer_class = UserSerializer
    scopes = {"GET": Scope.ADMIN}
    ordering = "username"
    orderings = ("-username", "date_joined", "-date_joined")
    filters = (
        Filter("name", "username", "Filter by user name."),
        Filter("team", "memberships__team__name", "Filter by team: only its members."),
    )

    def get_queryset(self) -> QuerySet[User]:
        return user_query()


class UserDetailView(_OfInstallation, APIView):
    """One user."""

    scopes = {"GET": Scope.ADMIN, "PATCH": Scope.ADMIN}

    @extend_schema(responses=UserSerializer)
    def get(self, _request: Request, user: str) -> Response:
        """Return the user."""
        return Response(UserSerializer(user_get(username=user)).data)

    @extend_schema(request=UserSwitchSerializer, responses=UserSerializer)
    def patch(self, request: Request, user: str) -> Response:
        """Disable or enable the user. Sessions and tokens of a disabled user are rejected; roles are kept."""
        asked = UserSwitchSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said: dict[str, Any] = asked.validated_data
        user_switch_by(
            caller=caller_token(request),
            username=user,
            is_active=said["active"],
            reason=said["reason"],
            now=timezone.now(),
        )
        return Response(UserSerializer(user_get(username=user)).data)


class InvitationSerializer(serializers.Serializer[CreatedInvitation]):
    """An invitation; `url` is returned only once."""

    user = serializers.CharField(source="invitation.user.username")
    url = serializers.SerializerMethodField(
        help_text="Link that works once: it links the user to the identity provider account that then signs in."
    )
    expires_at = serializers.DateTimeField(source="invitation.expires_at")

    def get_url(self, created: CreatedInvitation) -> str:
        """Return the link."""
        return invitation_url(created)


class UserInvitationView(_OfInstallation, APIView):
    """Invitation to link a user to an identity provider account."""

    scopes = {"POST": Scope.ADMIN}

    @idempotent(has_secret=True)
    @extend_schema(request=None, responses={201: InvitationSerializer})
    def post(self, request: Request, user: str) -> Response:
        """Create a link for the user, valid for 72 hours and one sign-in; it replaces an unused one."""
        created = invitation_create(username=user, actor=actor_of(request), now=timezone.now())
        return Response(InvitationSerializer(created).data, status=201)


class UserIdentityView(_OfInstallation, APIView):
    """The identity provider account linked to a user."""

    scopes = {"DELETE": Scope.ADMIN}

    @extend_schema(responses={204: None})
    def delete(self, request: Request, user: str) -> Response:
        """Unlink the identity provider account, and revoke the user's sessions and tokens. Roles are kept."""
        identity_forget(username=user, actor=actor_of(request), now=timezone.now())
        return Response(status=204)
