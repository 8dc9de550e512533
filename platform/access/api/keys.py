"""`/api/v1/keys`: keys by which callers of services are known."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from access.domain.patterns import MOST
from access.models import AccessKey
from access.selectors import key_get, key_query
from access.services.keys import (
    DEFAULT_LIFETIME,
    DEFAULT_OVERLAP,
    IssuedKey,
    key_create,
    key_limit,
    key_revoke,
    key_rotate,
)
from accounts.api.idempotency import idempotent
from accounts.auth.access import Place, require
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.roles import DEFAULT_TEAM
from accounts.domain.scopes import Scope
from accounts.selectors.users import user_get
from accounts.services.teams import team_get
from common import durations
from common.http.filters import Filter
from common.http.request_serializer import RequestSerializer
from integrations.clusters.base import MOST_PER_SECOND, MOST_ROWS_PER_MINUTE


class AccessKeySerializer(serializers.ModelSerializer[AccessKey]):
    """A key without its token, which is not stored."""

    team = serializers.CharField(source="team.name")
    user = serializers.CharField(source="user.username", default=None, allow_null=True)
    services = serializers.ListField(child=serializers.CharField())
    expires_at = serializers.SerializerMethodField(help_text="When its newest token expires.")
    valid = serializers.SerializerMethodField(help_text="Whether gateways accept one of its tokens.")
    tokens = serializers.SerializerMethodField(help_text="Number of its valid tokens: two while it is rotated.")
    last_used_at = serializers.DateTimeField(
        allow_null=True,
        help_text="When the local gateway last served or refused it, some seconds late; null for never.",
    )

    class Meta:
        model = AccessKey
        fields = [
            "name", "team", "user", "services", "created_at", "created_by", "expires_at", "revoked_at", "valid",
            "tokens", "requests_per_second", "rows_per_minute", "last_used_at",
        ]  # fmt: skip
        read_only_fields = fields

    def get_expires_at(self, key: AccessKey) -> datetime:
        """Return the end of its newest token."""
        return max(each.expires_at for each in key.tokens.all())

    def get_valid(self, key: AccessKey) -> bool:
        """Return whether one of its tokens is valid now."""
        return self.get_tokens(key) > 0

    def get_tokens(self, key: AccessKey) -> int:
        """Return the number of valid tokens."""
        now = timezone.now()
        return sum(each.is_valid(now) for each in key.tokens.all())


class IssuedAccessKeySerializer(AccessKeySerializer):
    """A key with a new token, which is returned only once."""

    token = serializers.SerializerMethodField(help_text="Clients send it as `Authorization: Bearer <token>`.")

    class Meta(AccessKeySerializer.Meta):
        fields = [*AccessKeySerializer.Meta.fields, "token"]
        read_only_fields = fields

    def get_token(self, _key: AccessKey) -> str:
        """Return the token, which the view passes in the context."""
        return str(self.context["token"])


class RatesSerializer(RequestSerializer[AccessKey]):
    """Limits of the requests of a key to all services together."""

    requests_per_second = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=MOST_PER_SECOND, help_text="Null for no limit."
    )
    rows_per_minute = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        max_value=MOST_ROWS_PER_MINUTE,
        help_text="Rows of these requests; null for no limit.",
    )


class AccessKeyCreateSerializer(RatesSerializer):
    """A key to create."""

    name = serializers.CharField(max_length=63, help_text="A DNS label, by which services and usage know the caller.")
    team = serializers.CharField(max_length=63, default=DEFAULT_TEAM, help_text="The team that owns it.")
    user = serializers.CharField(
        max_length=150, required=False, help_text="The person whose key it is; absent for a program's."
    )
    services = serializers.ListField(
        child=serializers.CharField(max_length=130),
        max_length=MOST,
        help_text="Services that it may call: `*`, `<namespace>/*`, `<namespace>/<beginning>*` or "
        "`<namespace>/<service>`.",
    )
    expires_in = serializers.CharField(
        default=durations.render(DEFAULT_LIFETIME), max_length=40, help_text="Lifetime of each token as a duration."
    )


class AccessKeyLimitSerializer(RatesSerializer):
    """Limits of a key; one that is absent stays."""

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a body without a limit."""
        if not attrs:
            raise serializers.ValidationError("the body has no limit; expected requests_per_second or rows_per_minute")
        return attrs


class AccessKeyRotateSerializer(RequestSerializer[AccessKey]):
    """How a key is rotated."""

    overlap = serializers.CharField(
        default=durations.render(DEFAULT_OVERLAP),
        max_length=40,
        help_text="How long the token of before stays valid, as a duration; `0` ends it at once.",
    )


class KeyListView(ListAPIView[AccessKey]):
    """List keys of the caller's teams by name; administrators of the installation see all."""

    serializer_class = AccessKeySerializer
    scopes = {"POST": Scope.ADMIN}
    ordering = "name"
    orderings = ("-name", "created_at", "-created_at")
    filters = (
        Filter("team", "team__name", "Filter by owning team."),
        Filter("user", "user__username", "Filter by person."),
    )

    def place(self) -> Place:
        """Return the required place: any; a key is created by an admin of its team."""
        return Place.anywhere()

    def get_queryset(self) -> QuerySet[AccessKey]:
        return key_query(token=caller_token(self.request))

    @idempotent(has_secret=True)
    @extend_schema(request=AccessKeyCreateSerializer, responses={201: IssuedAccessKeySerializer})
    def post(self, request: Request) -> Response:
        """Create a key. The response contains its token, which cannot be retrieved later."""
        asked = AccessKeyCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        said: dict[str, Any] = asked.validated_data
        require(caller_token(request), Scope.ADMIN, Place.team(said["team"]))
        issued = key_create(
            name=said["name"],
            team=team_get(name=said["team"]),
            user=None if "user" not in said else user_get(username=said["user"]),
            services=said["services"],
            lifetime=durations.parse(said["expires_in"], field="expires_in"),
            actor=actor_of(request),
            now=timezone.now(),
            requests_per_second=said.get("requests_per_second"),
            rows_per_minute=said.get("rows_per_minute"),
        )
        return _issued(issued, status.HTTP_201_CREATED)


class _OfKey:
    """A view of one key, authorized by the caller's role in its team."""

    kwargs: dict[str, Any]

    def place(self) -> Place:
        return Place.team(key_get(name=self.kwargs["name"]).team.name)


class KeyDetailView(_OfKey, APIView):
    """One key."""

    scopes = {"DELETE": Scope.ADMIN, "PATCH": Scope.ADMIN}

    @extend_schema(responses=AccessKeySerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the key."""
        return Response(AccessKeySerializer(key_get(name=name)).data)

    @extend_schema(request=AccessKeyLimitSerializer, responses=AccessKeySerializer)
    def patch(self, request: Request, name: str) -> Response:
        """Limit the requests of the key. Gateways apply it within seconds."""
        asked = AccessKeyLimitSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        key_limit(name=name, limits=asked.validated_data, actor=actor_of(request), now=timezone.now())
        return Response(AccessKeySerializer(key_get(name=name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Revoke the key and all its tokens. Its name stays taken, with what services permit it."""
        key_revoke(name=name, actor=actor_of(request), now=timezone.now())
        return Response(status=status.HTTP_204_NO_CONTENT)


class KeyRotateView(_OfKey, APIView):
    """Rotation of a key."""

    scopes = {"POST": Scope.ADMIN}

    @idempotent(has_secret=True)
    @extend_schema(request=AccessKeyRotateSerializer, responses={201: IssuedAccessKeySerializer})
    def post(self, request: Request, name: str) -> Response:
        """Create a new token for the key. The one of before stays valid for the overlap."""
        asked = AccessKeyRotateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        overlap = durations.parse(asked.validated_data["overlap"], field="overlap")
        issued = key_rotate(name=name, overlap=overlap, actor=actor_of(request), now=timezone.now())
        return _issued(issued, status.HTTP_201_CREATED)


def _issued(issued: IssuedKey, answer: int) -> Response:
    key = key_get(name=issued.key.name)
    return Response(IssuedAccessKeySerializer(key, context={"token": issued.token}).data, status=answer)
