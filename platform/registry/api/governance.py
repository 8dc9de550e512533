"""Governance of a model: protected aliases, the approval rule, rules that outlive it, and approvals of versions."""

from typing import ClassVar

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.auth.access import Place, permitted, require
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from registry import selectors
from registry.api.access import OfModel
from registry.api.serializers import (
    ApprovalRuleSerializer,
    DecisionSerializer,
    KeptRulesSerializer,
    ModelSerializer,
    VersionSerializer,
)
from registry.domain.approval import parse_decision
from registry.models import KeptRules
from registry.selectors.kept_rules import has_changed_hands, kept_rules_get, kept_rules_list
from registry.services import governance
from registry.services.model_rows import kept_rules_remove


class ProtectedAliasView(OfModel, APIView):
    """Protection of an alias: only admins of the owning team set, move and delete it."""

    scopes: ClassVar = {"PUT": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(request=None, responses=ModelSerializer)
    def put(self, request: Request, name: str, alias: str) -> Response:
        """Protect the alias, which need not exist yet. Only team admins set, move and delete protected aliases."""
        governance.alias_protect(model=name, name=alias, now=timezone.now(), actor=actor_of(request))
        return Response(ModelSerializer(selectors.model_get(name=name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str, alias: str) -> Response:
        """Remove the protection: every deployer of the team may set, move and delete the alias."""
        governance.alias_unprotect(model=name, name=alias, now=timezone.now(), actor=actor_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ApprovalRuleView(OfModel, APIView):
    """Whether services require approved versions of the model."""

    scopes: ClassVar = {"PUT": Scope.ADMIN}

    @extend_schema(request=ApprovalRuleSerializer, responses=ModelSerializer)
    def put(self, request: Request, name: str) -> Response:
        """Set whether services may use only approved versions. Versions that are already served stay."""
        asked = ApprovalRuleSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        governance.approval_require(
            model=name,
            is_required=asked.validated_data["requires_approval"],
            now=timezone.now(),
            actor=actor_of(request),
        )
        return Response(ModelSerializer(selectors.model_get(name=name)).data)


class KeptRulesListView(ListAPIView[KeptRules]):
    """List the rules that deleted models left, by name, of the names whose team the caller administers."""

    scopes: ClassVar = {"GET": Scope.ADMIN}
    serializer_class = KeptRulesSerializer
    ordering = "name"
    orderings = ("-name", "kept_at", "-kept_at")

    def place(self) -> Place:
        """Return the place whose role is required: any team's, whose names the list has."""
        return Place.anywhere()

    def get_queryset(self) -> QuerySet[KeptRules]:
        return kept_rules_list(only=permitted(caller_token(self.request), Scope.ADMIN, Owned.MODEL, "name"))


class KeptRulesView(OfModel, APIView):
    """The rules that the deleted model of a name left; the next model of that name begins with them."""

    scopes: ClassVar = {"GET": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(responses=KeptRulesSerializer)
    def get(self, _request: Request, name: str) -> Response:
        """Return the kept rules."""
        return Response(KeptRulesSerializer(kept_rules_get(name=name)).data)

    @extend_schema(responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Remove them; needs an admin of the installation where the name belongs to another team since the deletion."""
        if has_changed_hands(name=name):
            require(caller_token(request), Scope.ADMIN, Place.installation())
        kept_rules_remove(name=name, now=timezone.now(), actor=actor_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ApprovalView(OfModel, APIView):
    """The approval of a version."""

    @extend_schema(request=DecisionSerializer, responses=VersionSerializer)
    def put(self, request: Request, name: str, number: int) -> Response:
        """Approve or decline the version. The newest decision counts. Users cannot approve versions they registered."""
        asked = DecisionSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        version = governance.version_decide(
            model=name,
            number=number,
            decision=parse_decision(asked.validated_data["state"]),
            comment=asked.validated_data["comment"],
            approver=caller_token(request).approver,
            now=timezone.now(),
            actor=actor_of(request),
        )
        return Response(VersionSerializer(version).data)
