"""Serializers of tokens and audit log entries."""

from datetime import timedelta

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


class WhoAmISerializer(serializers.Serializer[ApiToken]):
    """The caller: user, token, scope and roles."""

    user = serializers.CharField(source="user.username")
    token = serializers.CharField(source="name")
    scope = serializers.CharField()
    roles = serializers.DictField(child=serializers.CharField(), help_text="Roles of the user, by team.")
    expires_at = serializers.DateTimeField()
