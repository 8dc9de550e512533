"""`/api/v1/storage`: what model files take, and the deletion of those that no version has."""

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.api.idempotency import idempotent
from accounts.auth.access import Place, is_administrator, visible
from accounts.auth.permissions import actor_of, caller_token
from accounts.domain.roles import Owned
from accounts.domain.scopes import Scope
from registry.selectors.disk_usage import (
    ModelSpace,
    StoreSpace,
    VersionSpace,
    model_spaces,
    store_space,
    unnamed_versions,
)
from registry.services import artifacts_collect
from registry.storage import UnusedArtifact


class ModelSpaceSerializer(serializers.Serializer[ModelSpace]):
    """What the files of a model's versions take together."""

    name = serializers.CharField()
    versions = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class VersionSpaceSerializer(serializers.Serializer[VersionSpace]):
    """A version that nothing names, so that it can be deleted."""

    model = serializers.CharField()
    number = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    status = serializers.CharField()
    created_at = serializers.DateTimeField()
    remembered_by = serializers.IntegerField(help_text="Services whose ended revisions ran it and go with it.")


class UnusedArtifactSerializer(serializers.Serializer[UnusedArtifact]):
    """Files that no version has."""

    digest = serializers.CharField()
    size_bytes = serializers.IntegerField()
    is_settled = serializers.BooleanField(help_text="Whether they were stored long enough ago to be deleted.")


class StoreSpaceSerializer(serializers.Serializer[StoreSpace]):
    """The store as a whole."""

    size_bytes = serializers.IntegerField(help_text="Of all that versions have; what several have counts once.")
    unused = UnusedArtifactSerializer(many=True)
    unused_bytes = serializers.IntegerField()
    collectable_bytes = serializers.IntegerField()
    free_bytes = serializers.IntegerField(help_text="Of the disk.")
    total_bytes = serializers.IntegerField(help_text="Of the disk.")


class StorageSerializer(serializers.Serializer[Any]):
    """What model files take."""

    store = StoreSpaceSerializer(allow_null=True, help_text="null for who does not administer the installation.")
    models = ModelSpaceSerializer(many=True, help_text="The largest 50.")
    unnamed = VersionSpaceSerializer(many=True, help_text="The largest 50 versions that nothing names.")


class CollectedSerializer(serializers.Serializer[Any]):
    """What was deleted."""

    deleted = serializers.ListField(child=serializers.CharField(), help_text="Digests.")
    size_bytes = serializers.IntegerField()


class StorageView(APIView):
    """What takes space."""

    def place(self) -> Place:
        """Return where the caller needs a role."""
        return Place.anywhere()

    @extend_schema(responses=StorageSerializer)
    def get(self, request: Request) -> Response:
        """Return which models take most, and what can be deleted, of what the caller may see."""
        token = caller_token(request)
        seen = visible(token, Owned.MODEL, "model__name")
        found = {
            "store": store_space(now=timezone.now()) if is_administrator(token) else None,
            "models": model_spaces(seen),
            "unnamed": unnamed_versions(seen),
        }
        return Response(StorageSerializer(found).data)


class StorageCollectView(APIView):
    """The deletion of artifacts that no version has."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    def place(self) -> Place:
        """Return where the caller needs a role."""
        return Place.installation()

    @idempotent()
    @extend_schema(request=None, responses=CollectedSerializer)
    def post(self, request: Request) -> Response:
        """Delete the artifacts that no version has now; those stored within the last hour stay."""
        deleted = artifacts_collect(now=timezone.now(), actor=actor_of(request))
        size_bytes = sum(each.size_bytes for each in deleted)
        return Response(
            CollectedSerializer({"deleted": [each.digest for each in deleted], "size_bytes": size_bytes}).data
        )
