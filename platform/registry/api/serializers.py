"""JSON forms of models, versions and aliases."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.requests import RequestSerializer
from registry.annotations import Changes
from registry.lineage import Lineage
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
    tags = serializers.DictField(child=serializers.CharField())
    aliases = AliasSerializer(many=True)

    class Meta:
        model = RegisteredModel
        fields = [
            "name",
            "description",
            "tags",
            "compatible_with",
            "latest_version",
            "aliases",
            "created_at",
            "created_by",
        ]
        read_only_fields = fields


class ModelCreateSerializer(RequestSerializer[RegisteredModel]):
    """What a new model is asked to be."""

    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True, default="")


class VersionChangeSerializer(RequestSerializer[ModelVersion]):
    """What may be said anew of a version. `tags` are merged: null takes one away, what is not named stays."""

    description = serializers.CharField(allow_blank=True, required=False, trim_whitespace=False)
    tags = serializers.DictField(
        child=serializers.CharField(allow_blank=True, allow_null=True, trim_whitespace=False), required=False
    )

    def changes(self) -> Changes:
        """Return what is asked for; raises ValidationError, and InvalidInput for what does not change."""
        self.is_valid(raise_exception=True)
        return Changes(**self.validated_data)


class ModelChangeSerializer(VersionChangeSerializer):
    """What may be said anew of a model. New versions are rejected unless they can stand in for `compatible_with`."""

    compatible_with = serializers.CharField(
        allow_blank=True, required=False, help_text="`@alias` or a number; empty for no check."
    )


class LineageSerializer(serializers.Serializer[Any]):
    """Where a version came from, as it was said at registration."""

    source_commit = serializers.CharField()
    run_url = serializers.CharField()
    data_reference = serializers.CharField()
    parameters = serializers.DictField(child=serializers.CharField())


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
    tags = serializers.DictField(child=serializers.CharField())
    lineage = serializers.SerializerMethodField()
    compatible_with = serializers.SerializerMethodField()

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
            "description",
            "tags",
            "lineage",
            "compatible_with",
            "aliases",
            "created_at",
            "created_by",
        ]
        read_only_fields = fields

    @extend_schema_field(SignatureSerializer)
    def get_signature(self, version: ModelVersion) -> dict[str, Any]:
        """Return the signature with both its lists, also before it is known."""
        return {"inputs": [], "outputs": [], **version.signature}

    @extend_schema_field(LineageSerializer)
    def get_lineage(self, version: ModelVersion) -> dict[str, Any]:
        """Return the lineage with all its parts, also of a version from before lineage was kept."""
        return {**Lineage().as_json(), **version.lineage}

    def get_compatible_with(self, version: ModelVersion) -> int | None:
        """Return the number of the version that this one was registered to stand in for."""
        number: int | None = version.required_signature.get("version")
        return number

    def get_aliases(self, version: ModelVersion) -> list[str]:
        """Return the names that point here."""
        return sorted(alias.name for alias in version.aliases.all())
