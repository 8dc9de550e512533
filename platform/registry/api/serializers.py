"""Serializers of models, versions, aliases and imports."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from common.http.request_serializer import RequestSerializer
from common.identifiers import MAX_COMMENT
from registry.domain.approval import DECISIONS, Approval
from registry.domain.lineage import Lineage
from registry.domain.version_metadata import Particulars
from registry.models import Alias, KeptRules, ModelImport, ModelVersion, RegisteredModel
from registry.services.annotations import Changes
from registry.services.upload_preflight import Offer, OfferedFile


class AliasSerializer(serializers.ModelSerializer[Alias]):
    """An alias and the number of the version that it points to."""

    version = serializers.IntegerField(source="version.number")

    is_protected = serializers.BooleanField(
        help_text="Whether only admins of the owning team may move or delete the alias."
    )

    class Meta:
        model = Alias
        fields = ["name", "version", "is_protected", "moved_at"]
        read_only_fields = fields


class AliasSetSerializer(RequestSerializer[Alias]):
    """The version to point the alias to."""

    version = serializers.IntegerField(min_value=1, max_value=2**31 - 1)


class ModelSerializer(serializers.ModelSerializer[RegisteredModel]):
    """A model; `latest_version` is the highest existing version number, null without versions."""

    latest_version = serializers.IntegerField(allow_null=True)
    tags = serializers.DictField(child=serializers.CharField())
    aliases = AliasSerializer(many=True)
    protected_aliases = serializers.ListField(
        child=serializers.CharField(),
        help_text="Alias names that only admins of the owning team may set, move and delete.",
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


class KeptRulesSerializer(serializers.ModelSerializer[KeptRules]):
    """Rules of a deleted model, with which the next model of that name begins."""

    protected_aliases = serializers.ListField(child=serializers.CharField())
    team = serializers.CharField(help_text="Team that owned the name when the model was deleted.")
    owner = serializers.CharField(help_text="Team that owns the name now.")

    class Meta:
        model = KeptRules
        fields = ["name", "requires_approval", "protected_aliases", "team", "owner", "kept_at", "kept_by"]
        read_only_fields = fields


class ModelCreateSerializer(RequestSerializer[RegisteredModel]):
    """A model to create."""

    name = serializers.CharField()
    description = serializers.CharField(allow_blank=True, default="")


class OfferedFileSerializer(RequestSerializer[OfferedFile]):
    """A file to upload."""

    path = serializers.CharField(
        max_length=4000,
        trim_whitespace=False,
        help_text="Path of the file; for a file in a folder, it begins with that folder.",
    )
    size_bytes = serializers.IntegerField(min_value=0)


class OfferCreateSerializer(RequestSerializer[Offer]):
    """Files to upload as a version."""

    files = OfferedFileSerializer(many=True)
    is_new_model = serializers.BooleanField(
        default=False, help_text="Whether the model must be new; with `true`, fails with 409 if it exists."
    )

    def arguments(self) -> tuple[list[OfferedFile], bool]:
        """Return the files, and whether the model must be new; raises ValidationError."""
        self.is_valid(raise_exception=True)
        return [OfferedFile(**file) for file in self.validated_data["files"]], self.validated_data["is_new_model"]


class OfferSerializer(serializers.Serializer[Offer]):
    """How to upload the files."""

    filename = serializers.CharField(help_text="File name of the upload.")
    is_archive = serializers.BooleanField(help_text="Whether the upload's body must be a tar archive of the files.")


class VersionChangeSerializer(RequestSerializer[ModelVersion]):
    """Fields of a version to change. `tags` are merged: null deletes a tag, absent tags stay unchanged."""

    description = serializers.CharField(allow_blank=True, required=False, trim_whitespace=False)
    tags = serializers.DictField(
        child=serializers.CharField(allow_blank=True, allow_null=True, trim_whitespace=False), required=False
    )

    def changes(self) -> Changes:
        """Return the changes; raises ValidationError, and InvalidInput for fields that cannot change."""
        self.is_valid(raise_exception=True)
        return Changes(**self.validated_data)


class ModelChangeSerializer(VersionChangeSerializer):
    """Fields of a model to change. New versions incompatible with `compatible_with` are rejected."""

    compatible_with = serializers.CharField(
        allow_blank=True,
        required=False,
        help_text="Version that new versions must be compatible with, as `@alias` or a number; empty for no check.",
    )


class LineageSerializer(serializers.Serializer[Any]):
    """Lineage of a version, as given at registration."""

    source_commit = serializers.CharField()
    run_url = serializers.CharField()
    data_reference = serializers.CharField()
    parameters = serializers.DictField(child=serializers.CharField())
    source_uri = serializers.CharField()
    built_from = serializers.CharField(help_text="Version that the files were built from, such as models:/digits/3.")
    accelerator = serializers.CharField(help_text="GPU or slice that the files were built on, which runs them.")
    products = serializers.ListField(child=serializers.CharField())


class TensorSerializer(serializers.Serializer[Any]):
    """An input or output tensor; -1 is a dimension of any size, the batch dimension comes first."""

    name = serializers.CharField()
    datatype = serializers.CharField()
    shape = serializers.ListField(child=serializers.IntegerField())


class SignatureSerializer(serializers.Serializer[Any]):
    """Inputs and outputs of a model; empty until the version is READY."""

    inputs = TensorSerializer(many=True)
    outputs = TensorSerializer(many=True)


class ApprovalRuleSerializer(RequestSerializer[RegisteredModel]):
    """Whether services may use only approved versions of the model."""

    requires_approval = serializers.BooleanField()


class DecisionSerializer(RequestSerializer[ModelVersion]):
    """A decision about a version; declining requires a comment."""

    state = serializers.ChoiceField(choices=[each.value for each in DECISIONS])
    comment = serializers.CharField(default="", allow_blank=True, max_length=MAX_COMMENT)


class ApprovalSerializer(serializers.Serializer[Any]):
    """Approval of a version, with the user, time and comment of the newest decision."""

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
        """Return the signature; its lists are empty until it is known."""
        return {"inputs": [], "outputs": [], **version.signature}

    @extend_schema_field(LineageSerializer)
    def get_lineage(self, version: ModelVersion) -> dict[str, Any]:
        """Return the lineage with all its fields, also for versions registered before lineage was stored."""
        return {**Lineage().as_json(), **version.lineage}

    def get_compatible_with(self, version: ModelVersion) -> int | None:
        """Return the number of the version that this one was registered as compatible with."""
        number: int | None = version.required_signature.get("version")
        return number

    @extend_schema_field(ApprovalSerializer)
    def get_approval(self, version: ModelVersion) -> dict[str, Any]:
        """Return the approval of the version."""
        return ApprovalSerializer(
            {
                "state": version.approval,
                "by": version.approval_by or None,
                "at": version.approval_at,
                "comment": version.approval_comment,
            }
        ).data

    def get_aliases(self, version: ModelVersion) -> list[str]:
        """Return the names of the aliases that point to the version."""
        return sorted(alias.name for alias in version.aliases.all())


class ImportSerializer(serializers.ModelSerializer[ModelImport]):
    """An import; `version` is the resulting version, null until then. The URI's query is not returned."""

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
    """An import to start, with the metadata of the version."""

    uri = serializers.CharField(
        help_text="Source http(s)://, s3://, gs:// or file://, with a prefix that FAIRLEAD_IMPORT_FROM allows."
    )
    filename = serializers.CharField(
        required=False,
        max_length=255,
        help_text="File name that determines the format if the URI does not, such as `model.onnx`.",
    )
    sha256 = serializers.CharField(
        required=False, help_text="SHA-256 of a single file, 64 hex digits; verified if given."
    )
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
