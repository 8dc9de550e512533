"""JSON forms of models, versions and aliases."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.requests import RequestSerializer
from registry.models import Alias, ModelVersion, RegisteredModel


class AliasSerializer(serializers.ModelSerializer[Alias]):
    """An alias and the number of the version it points at."""

    version = serializers.IntegerField(source="version.number")

    class Meta:
        model = Alias
        fields = ["name", "version", "moved_at"]
        read_only_fields = fields


class AliasSetSerializer(RequestSerializer[Alias]):
    """Where an alias is to point."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class ModelSerializer(serializers.ModelSerializer[RegisteredModel]):
    """A model; `latest_version` is its highest number that is still there."""

    latest_version = serializers.IntegerField(allow_null=True)
    aliases = AliasSerializer(many=True)

    class Meta:
        model = RegisteredModel
        fields = ["name", "description", "latest_version", "aliases", "created_at", "created_by"]
        read_only_fields = fields


class ModelCreateSerializer(RequestSerializer[RegisteredModel]):
    """What a new model is asked to be."""

    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True, default="")


class TensorSerializer(serializers.Serializer[Any]):
    """One input or output; a dimension of -1 takes any size, the batch dimension is first."""

    name = serializers.CharField()
    datatype = serializers.CharField()
    shape = serializers.ListField(child=serializers.IntegerField())


class SignatureSerializer(serializers.Serializer[Any]):
    """What a model takes and gives; empty until the version is READY."""

    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)


class VersionSerializer(serializers.ModelSerializer[ModelVersion]):
    """One version of a model."""

    model = serializers.CharField(source="model.name")
    signature = serializers.SerializerMethodField()
    aliases = serializers.SerializerMethodField()

    class Meta:
        model = ModelVersion
        fields = [
            "model",
            "number",
            "digest",
            "status",
            "reason",
            "platform",
            "signature",
            "profile",
            "size_bytes",
            "source_name",
            "aliases",
            "created_at",
            "created_by",
        ]
        read_only_fields = fields

    @extend_schema_field(SignatureSerializer)
    def get_signature(self, version: ModelVersion) -> dict[str, Any]:
        """Return the signature with both its lists, also before it is known."""
        return {"inputs": [], "outputs": [], **version.signature}

    def get_aliases(self, version: ModelVersion) -> list[str]:
        """Return the names that point here."""
        return sorted(alias.name for alias in version.aliases.all())
