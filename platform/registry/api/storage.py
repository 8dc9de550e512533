"""`/api/v1/storage`: disk usage of model files, and deletion of unused artifacts."""

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
    """Disk usage of a model's versions."""

    name = serializers.CharField()
    versions = serializers.IntegerField()
    size_bytes = serializers.IntegerField()


class VersionSpaceSerializer(serializers.Serializer[VersionSpace]):
    """A version without references, which can be deleted."""

    model = serializers.CharField()
    number = serializers.IntegerField()
    size_bytes = serializers.IntegerField()
    status = serializers.CharField()
    created_at = serializers.DateTimeField()
    remembered_by = serializers.IntegerField(
        help_text="Number of services whose ended revisions ran the version and are deleted with it."
    )


class UnusedArtifactSerializer(serializers.Serializer[UnusedArtifact]):
    """An artifact that no version uses."""

    digest = serializers.CharField()
    size_bytes = serializers.IntegerField()
    is_settled = serializers.BooleanField(help_text="Whether the artifact is old enough to be deleted.")


class StoreSpaceSerializer(serializers.Serializer[StoreSpace]):
    """Disk usage of the artifact store."""

    size_bytes = serializers.IntegerField(help_text="Bytes of all artifacts of versions; shared artifacts count once.")
    unused = UnusedArtifactSerializer(many=True)
    unused_bytes = serializers.IntegerField()
    collectable_bytes = serializers.IntegerField()
    free_bytes = serializers.IntegerField(help_text="Free bytes of the disk.")
    total_bytes = serializers.IntegerField(help_text="Size of the disk in bytes.")


class StorageSerializer(serializers.Serializer[Any]):
    """Disk usage of model files."""

    store = StoreSpaceSerializer(
        allow_null=True, help_text="Disk usage of the store; null unless the caller administers the installation."
    )
    models = ModelSpaceSerializer(many=True, help_text="The 50 largest models.")
    unnamed = VersionSpaceSerializer(many=True, help_text="The 50 largest versions without references.")


class CollectedSerializer(serializers.Serializer[Any]):
    """Deleted artifacts."""

    deleted = serializers.ListField(child=serializers.CharField(), help_text="Digests of the deleted artifacts.")
    size_bytes = serializers.IntegerField()


class StorageView(APIView):
    """Disk usage."""

    def place(self) -> Place:
        """Return the place where the caller needs a role."""
        return Place.anywhere()

    @extend_schema(responses=StorageSerializer)
    def get(self, request: Request) -> Response:
        """Return disk usage: the largest models and the deletable versions, of those that the caller may see."""
        token = caller_token(request)
        seen = visible(token, Owned.MODEL, "model__name")
        found = {
            "store": store_space(now=timezone.now()) if is_administrator(token) else None,
            "models": model_spaces(seen),
            "unnamed": unnamed_versions(seen),
        }
        return Response(StorageSerializer(found).data)


class StorageCollectView(APIView):
    """The deletion of unused artifacts."""

    scopes: ClassVar = {"POST": Scope.ADMIN}

    def place(self) -> Place:
        """Return the place where the caller needs a role."""
        return Place.installation()

    @idempotent()
    @extend_schema(request=None, responses=CollectedSerializer)
    def post(self, request: Request) -> Response:
        """Delete the artifacts that no version uses, except those stored within the last hour."""
        deleted = artifacts_collect(now=timezone.now(), actor=actor_of(request))
        size_bytes = sum(each.size_bytes for each in deleted)
        return Response(
            CollectedSerializer({"deleted": [each.digest for each in deleted], "size_bytes": size_bytes}).data
        )
