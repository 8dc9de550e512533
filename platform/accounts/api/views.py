"""`/api/v1/tokens`, `/api/v1/audit` and `/api/v1/whoami`."""

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.api.serializers import (
    AuditEntrySerializer,
    CreatedTokenSerializer,
    TokenCreateSerializer,
    TokenSerializer,
    WhoAmISerializer,
)
from accounts.auth.access import Place, is_administrator
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, User
from accounts.selectors import audit, audit_list, token_get, token_list
from accounts.services import token_create, token_revoke, user_for_token
from common.http.filters import Filter


def _whose(request: Request) -> User | None:
    """Return whose tokens the caller may see: his own, or for an administrator everybody's (None)."""
    token = caller_token(request)
    return None if is_administrator(token) else token.user


class TokenListView(ListAPIView[ApiToken]):
    """Tokens, newest first; only administrators make them."""

    serializer_class = TokenSerializer
    scopes = {"POST": Scope.ADMIN}
    ordering = "-id"
    orderings = ("id", "name", "-name", "expires_at", "-expires_at")
    filters = (
        Filter("user", "user__username", "Only tokens of this user."),
        Filter("name", "name", "Only tokens of this name."),
        Filter("scope", "scope", "Only tokens with this scope.", choices=tuple(Scope)),
    )

    def get_queryset(self) -> QuerySet[ApiToken]:
        return token_list(user=_whose(self.request))

    @idempotent(has_secret=True)
    @extend_schema(request=TokenCreateSerializer, responses={201: CreatedTokenSerializer})
    def post(self, request: Request) -> Response:
        """Make a token; the answer has its secret, which cannot be had again."""
        asked = TokenCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        username, actor, now = asked.validated_data.get("user"), actor_of(request), timezone.now()
        scope = Scope(asked.validated_data["scope"])
        created = token_create(
            user=caller_token(request).user
            if username is None
            else user_for_token(username=username, scope=scope, actor=actor, now=now),
            name=asked.validated_data["name"],
            scope=scope,
            lifetime=asked.lifetime(),
            now=now,
            actor=actor,
        )
        body = CreatedTokenSerializer(created.token, context={"secret": created.secret}).data
        return Response(body, status=status.HTTP_201_CREATED)


class TokenDetailView(APIView):
    """One token."""

    def place(self) -> Place:
        """Whoever may see the token may revoke it."""
        return Place.anywhere()

    @extend_schema(responses=TokenSerializer)
    def get(self, request: Request, token_id: int) -> Response:
        """Return the token: the caller's own, or for an administrator anybody's."""
        return Response(TokenSerializer(token_get(token_id=token_id, user=_whose(request))).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke the token: the caller's own, or for an administrator anybody's."""
        token_revoke(
            token=token_get(token_id=token_id, user=_whose(request)), now=timezone.now(), actor=actor_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditListView(ListAPIView[AuditEntry]):
    """What was done on this installation, newest first; for administrators."""

    serializer_class = AuditEntrySerializer
    scopes = {"GET": Scope.ADMIN}
    ordering = "-id"
    orderings = ("id",)
    filters = audit.FILTERS

    def get_queryset(self) -> QuerySet[AuditEntry]:
        return audit_list()


class WhoAmIView(APIView):
    """The caller."""

    @extend_schema(responses=WhoAmISerializer)
    def get(self, request: Request) -> Response:
        """Return the user and the token that the request came with."""
        return Response(WhoAmISerializer(caller_token(request)).data)
