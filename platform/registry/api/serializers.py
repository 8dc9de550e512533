"""JSON forms of models, versions and aliases."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.http.request_serializer import RequestSerializer
from common.identifiers import MAX_COMMENT
from registry.domain.approval import DECISIONS, Approval
from registry.domain.lineage import Lineage
from registry.domain.version_metadata import Particulars
from registry.models import Alias, ModelImport, ModelVersion, RegisteredModel
from registry.services.annotations import Changes
from registry.services.upload_preflight import Offer, OfferedFile


class AliasSerializer(serializers.ModelSerializer[Alias]):
    """An alias and the number of the version it points at."""

    version = serializers.IntegerField(source="version.number")

    is_protected = serializers.BooleanField(help_text="Whether only admins of the owning team may move or delete it.")

    class Meta:
        model = Alias
        fields = ["name", "version", "is_protected", "moved_at"]
        read_only_fields = fields


class AliasSetSerializer(RequestSerializer[Alias]):
    """Where an alias is to point."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class ModelSerializer(serializers.ModelSerializer[RegisteredModel]):
    """A model; `latest_version` is its highest number that is still there."""

    latest_version = serializers.IntegerField(allow_null=True)
    tags = serializers.DictField(child=serializers.CharField())
    aliases = AliasSerializer(many=True)
    protected_aliases = serializers.ListField(
        child=serializers.CharField(), help_text="Names that only admins of the owning team set, move and delete."
    )

    class Meta:
        model = RegisteredModel
        fields = [
            "name",
            "description",
            "tags",
            "compatible_with",
            "latest_version",
            "aliases",
            "protected_aliases",
            "requires_approval",
            "created_at",
            "created_by",
        ]
        read_only_fields = fields


class ModelCreateSerializer(RequestSerializer[RegisteredModel]):
    """What a new model is asked to be."""

    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True, default="")


class OfferedFileSerializer(RequestSerializer[OfferedFile]):
    """A file that would be sent."""

    path = serializers.CharField(
        max_length=4000, trim_whitespace=False, help_text="The path of one in a folder begins with that folder."
    )
    size_bytes = serializers.IntegerField(min_value=0)


class OfferCreateSerializer(RequestSerializer[Offer]):
    """Files that are to become a version."""

    files = OfferedFileSerializer(many=True)
    is_new_model = serializers.BooleanField(default=False, help_text="Refused where the model is there already.")

    def arguments(self) -> tuple[list[OfferedFile], bool]:
        """Return the files, and whether the model must be new; raises ValidationError."""
        self.is_valid(raise_exception=True)
        return [OfferedFile(**file) for file in self.validated_data["files"]], self.validated_data["is_new_model"]


class OfferSerializer(serializers.Serializer[Offer]):
    """How to send the files."""

    filename = serializers.CharField(help_text="What the upload is to be called.")
    is_archive = serializers.BooleanField(help_text="Whether the body is to be a tar archive of the files.")


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
    source_uri = serializers.CharField()
    built_from = serializers.CharField(help_text="The version that its files were built from, as models:/digits/3.")
    accelerator = serializers.CharField(help_text="The GPU or slice that they were built on, which runs them.")
    products = serializers.ListField(child=serializers.CharField())


class TensorSerializer(serializers.Serializer[Any]):
    """One input or output; a dimension of -1 takes any size, the batch dimension is first."""

    name = serializers.CharField()
    datatype = serializers.CharField()
    shape = serializers.ListField(child=serializers.IntegerField())


class SignatureSerializer(serializers.Serializer[Any]):
    """What a model takes and gives; empty until the version is READY."""

    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)


class ApprovalRuleSerializer(RequestSerializer[RegisteredModel]):
    """Whether only approved versions of the model come into services."""

    requires_approval = serializers.BooleanField()


class DecisionSerializer(RequestSerializer[ModelVersion]):
    """What somebody decides of a version; one that declines says why."""

    state = serializers.ChoiceField(choices=[each.value for each in DECISIONS])
    comment = serializers.CharField(default="", allow_blank=True, max_length=MAX_COMMENT)


class ApprovalSerializer(serializers.Serializer[Any]):
    """Whether people agree that the version is served; who said so last, when and why."""

    state = serializers.ChoiceField(choices=[each.value for each in Approval])
    by = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField(allow_null=True)
    comment = serializers.CharField()


class VersionSerializer(serializers.ModelSerializer[ModelVersion]):
    """One version of a model."""

    model = serializers.CharField(source="model.name")
    signature = serializers.SerializerMethodField()
    aliases = serializers.SerializerMethodField()
    tags = serializers.DictField(child=serializers.CharField())
    lineage = serializers.SerializerMethodField()
    compatible_with = serializers.SerializerMethodField()
    approval = serializers.SerializerMethodField()

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
            "approval",
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

    @extend_schema_field(ApprovalSerializer)
    def get_approval(self, version: ModelVersion) -> dict[str, Any]:
        """Return what people decided of the version."""
        return ApprovalSerializer(
            {
                "state": version.approval,
                "by": version.approval_by or None,
                "at": version.approval_at,
                "comment": version.approval_comment,
            }
        ).data

    def get_aliases(self, version: ModelVersion) -> list[str]:
        """Return the names that point here."""
        return sorted(alias.name for alias in version.aliases.all())


class ImportSerializer(serializers.ModelSerializer[ModelImport]):
    """Files on their way in; `version` is what they became. The query of a URI is not shown."""

    uri = serializers.CharField(source="shown_uri")
    version = serializers.IntegerField(source="version.number", allow_null=True, default=None)

    class Meta:
        model = ModelImport
        fields = [
            "id",
            "model",
            "uri",
            "status",
            "reason",
            "bytes_done",
            "bytes_total",
            "attempts",
            "version",
            "created_at",
            "created_by",
            "finished_at",
        ]
        read_only_fields = fields


class ImportCreateSerializer(RequestSerializer[ModelImport]):
    """What is to be imported, and what is to be kept with the version."""

    uri = serializers.CharField(
        help_text="http(s)://, s3://, gs:// or file://, below what FAIRLEAD_IMPORT_FROM allows."
    )
    filename = serializers.CharField(
        required=False, max_length=255, help_text="Tells the format of a file whose address does not: `model.onnx`."
    )
    sha256 = serializers.CharField(required=False, help_text="Of a single file, 64 hex digits; checked where given.")
    description = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    tags = serializers.DictField(child=serializers.CharField(allow_blank=True, trim_whitespace=False), required=False)
    source_commit = serializers.CharField(required=False, allow_blank=True)
    run_url = serializers.CharField(required=False, allow_blank=True)
    data_reference = serializers.CharField(required=False, allow_blank=True)
    parameters = serializers.DictField(
        child=serializers.CharField(allow_blank=True, trim_whitespace=False), required=False
    )
    compatible_with = serializers.CharField(required=False, allow_blank=True)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of `import_request`; raises ValidationError, and InvalidInput for an unknown field."""
        self.is_valid(raise_exception=True)
        asked = dict(self.validated_data)
        of_lineage = ("source_commit", "run_url", "data_reference", "parameters")
        lineage = Lineage(**{key: asked.pop(key) for key in of_lineage if key in asked})
        of_version = ("description", "tags", "compatible_with")
        particulars = Particulars(lineage=lineage, **{key: asked.pop(key) for key in of_version if key in asked})
        return {**asked, "sha256": asked.get("sha256", "").lower(), "particulars": particulars}
