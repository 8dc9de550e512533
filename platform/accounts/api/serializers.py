"""Serializers of tokens and audit log entries."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from rest_framework import serializers

from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from common import durations
from common.http.request_serializer import RequestSerializer


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token without its secret, which is not stored."""

    user = serializers.CharField(source="user.username", read_only=True)
    made_by = serializers.CharField(
        read_only=True,
        help_text="User who made the token; empty if not known. A token of another maker cannot approve or reject.",
    )

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "name",
            "user",
            "made_by",
            "hint",
            "scope",
            "created_at",
            "expires_at",
            "last_used_at",
            "revoked_at",
        ]
        read_only_fields = fields


class TokenCreateSerializer(RequestSerializer[ApiToken]):
    """A token to create."""

    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=[scope.value for scope in Scope], default=Scope.READ.value)
    expires_in = serializers.CharField(
        required=False, help_text="Lifetime as a duration, such as `12h`; the platform's default if absent."
    )
    user = serializers.CharField(
        max_length=150,
        required=False,
        help_text="Owner; the caller if absent. An unknown user is created, with the role in team `default` that the "
        "scope requires.",
    )

    def lifetime(self) -> timedelta:
        """Return the token's lifetime."""
        text = self.validated_data.get("expires_in")
        return settings.TOKEN_LIFETIME if text is None else durations.parse(text, field="expires_in")


class CreatedTokenSerializer(TokenSerializer):
    """A token with its secret, which is returned only once."""

    token = serializers.SerializerMethodField()

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields

    def get_token(self, _token: ApiToken) -> str:
        """Return the secret, which the view passes in the context."""
        return str(self.context["secret"])


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """An audit log entry: actor, action and target; `before` and `after` are null if the object did not exist."""

    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    detail = serializers.DictField()

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "action", "target", "before", "after", "detail", "request_id"]
        read_only_fields = fields


class AuditVerificationQuerySerializer(RequestSerializer[AuditEntry]):
    """Where a verification goes on."""

    after = serializers.IntegerField(
        min_value=0, max_value=2**63 - 1, default=0, help_text="Begin behind this position; 0 for the whole log."
    )


class AuditCheckpointSerializer(serializers.Serializer[AuditEntry]):
    """A signed hash of the chain; `audit_verify --checkpoint` takes it from a file."""

    position = serializers.IntegerField()
    entry = serializers.IntegerField(help_text="Id of the entry there.")
    hash = serializers.CharField(help_text="In hexadecimal.")
    pruned = serializers.BooleanField(help_text="Entries up to there were removed by pruning.")
    at = serializers.CharField(help_text="When it was signed.")
    signature = serializers.CharField(help_text="Ed25519, in hexadecimal.")


class AuditVerificationSerializer(serializers.Serializer[dict[str, Any]]):
    """The result of a verification of the audit log, or of a part of it."""

    broken = serializers.CharField(help_text="The first fault, as a sentence; empty where what was checked is whole.")
    complete = serializers.BooleanField(help_text="The end of the log was reached, or a fault.")
    position = serializers.IntegerField(help_text="The last checked position; `after` of the next request.")
    checked = serializers.IntegerField(help_text="Entries checked by this request.")
    waiting = serializers.IntegerField(help_text="Entries that are not chained yet; 0 unless complete.")
    pruned = serializers.IntegerField(help_text="Entries that were removed by pruning.")
    checkpoint = AuditCheckpointSerializer(allow_null=True, help_text="The newest one; keep it elsewhere.")
    public_keys = serializers.ListField(
        child=serializers.CharField(), help_text="Ed25519 keys of the checkpoints, in hexadecimal."
    )
    protected = serializers.BooleanField(
        help_text="The database role of the control plane can neither change nor remove entries (`audit_protect`)."
    )


class WhoAmISerializer(serializers.Serializer[ApiToken]):
    """The caller: user, token, scope and roles."""

    user = serializers.CharField(source="user.username")
    token = serializers.CharField(source="name")
    scope = serializers.CharField()
    roles = serializers.DictField(child=serializers.CharField(), help_text="Roles of the user, by team.")
    expires_at = serializers.DateTimeField()
