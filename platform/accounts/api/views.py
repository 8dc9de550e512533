"""`/api/v1/tokens`, `/api/v1/audit` and `/api/v1/whoami`."""

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.api.serializers import (
    AuditEntrySerializer,
    AuditVerificationQuerySerializer,
    AuditVerificationSerializer,
    CreatedTokenSerializer,
    TokenCreateSerializer,
    TokenSerializer,
    WhoAmISerializer,
)
from accounts.auth.access import Place, is_administrator
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.audit_chain import signed_line
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, User
from accounts.selectors import audit, audit_list, token_get, token_list
from accounts.selectors.audit_chain import audit_verify, public_keys
from accounts.selectors.audit_chain_export import audit_chain_export
from accounts.selectors.audit_protection import audit_excess
from accounts.services import token_create, token_revoke, user_for_token
from common.http.downloads import Attachment
from common.http.filters import Filter

_VERIFIED_AT_ONCE = 20_000
_LINES = "application/x-ndjson"


def _whose(request: Request) -> User | None:
    """Return the user whose tokens the caller may see; None for an administrator, who sees all."""
    token = caller_token(request)
    return None if is_administrator(token) else token.user


class TokenListView(ListAPIView[ApiToken]):
    """List tokens, newest first: the caller's own; administrators see all. Only administrators create tokens."""

    serializer_class = TokenSerializer
    scopes = {"POST": Scope.ADMIN}
    ordering = "-id"
    orderings = ("id", "name", "-name", "expires_at", "-expires_at")
    filters = (
        Filter("user", "user__username", "Filter by owner."),
        Filter("name", "name", "Filter by token name."),
        Filter("scope", "scope", "Filter by scope.", choices=tuple(Scope)),
    )

    def get_queryset(self) -> QuerySet[ApiToken]:
        return token_list(user=_whose(self.request))

    @idempotent(has_secret=True)
    @extend_schema(request=TokenCreateSerializer, responses={201: CreatedTokenSerializer})
    def post(self, request: Request) -> Response:
        """Create a token. The response contains its secret, which cannot be retrieved later."""
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
            maker=caller_token(request).approver,
        )
        body = CreatedTokenSerializer(created.token, context={"secret": created.secret}).data
        return Response(body, status=status.HTTP_201_CREATED)


class TokenDetailView(APIView):
    """One token."""

    def place(self) -> Place:
        """Return the required place: any, since each caller sees only tokens that it may revoke."""
        return Place.anywhere()

    @extend_schema(responses=TokenSerializer)
    def get(self, request: Request, token_id: int) -> Response:
        """Return the token. Administrators may read tokens of all users, others only their own."""
        return Response(TokenSerializer(token_get(token_id=token_id, user=_whose(request))).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Revoke the token. Administrators may revoke tokens of all users, others only their own."""
        token_revoke(
            token=token_get(token_id=token_id, user=_whose(request)), now=timezone.now(), actor=actor_of(request)
        )
        return Response(status=status.HTTP_204_NO_CONTENT)


class AuditListView(ListAPIView[AuditEntry]):
    """List audit log entries, newest first. For administrators of the installation."""

    serializer_class = AuditEntrySerializer
    scopes = {"GET": Scope.ADMIN}
    ordering = "-id"
    orderings = ("id",)
    filters = audit.FILTERS

    def get_queryset(self) -> QuerySet[AuditEntry]:
        return audit_list()


class AuditVerificationView(APIView):
    """Verification of the audit log. For administrators of the installation."""

    scopes = {"GET": Scope.ADMIN}

    @extend_schema(parameters=[AuditVerificationQuerySerializer], responses=AuditVerificationSerializer)
    def get(self, request: Request) -> Response:
        """Verify a part of the audit log's hash chain; where `complete` is false, ask again with its `position`."""
        asked = AuditVerificationQuerySerializer(data=request.query_params)
        asked.is_valid(raise_exception=True)
        found = audit_verify(after=asked.validated_data["after"], limit=_VERIFIED_AT_ONCE)
        newest = None if found.newest is None else signed_line(*found.newest)
        more = {"checkpoint": newest, "public_keys": public_keys(), "protected": not audit_excess()}
        answer = {**asdict(found), **more}
        return Response(AuditVerificationSerializer(answer).data)


class AuditExportView(APIView):
    """The audit log as a file. For administrators of the installation."""

    scopes = {"GET": Scope.ADMIN}

    @extend_schema(responses={(200, _LINES): OpenApiTypes.BINARY})
    def get(self, _request: Request) -> Attachment:
        """Return the whole log, oldest first, with hashes, checkpoints and public keys: `fairlead audit verify FILE`
        verifies it without a server. Entries are in it once they are chained, within seconds."""
        now = timezone.now()
        name = f"audit-{now:%Y-%m-%d}.jsonl"
        return Attachment(audit_chain_export(now=now), filename=name, content_type=_LINES)

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:  # noqa: ARG002
        """Ignore `Accept`: the file has one format, and errors are JSON."""
        return super().perform_content_negotiation(request, force=True)


class WhoAmIView(APIView):
    """The caller."""

    @extend_schema(responses=WhoAmISerializer)
    def get(self, request: Request) -> Response:
        """Return the user and the token of the request."""
        return Response(WhoAmISerializer(caller_token(request)).data)
