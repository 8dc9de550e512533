"""JSON forms of tokens and of the audit log."""

from datetime import timedelta

from django.conf import settings
from rest_framework import serializers

from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry
from common import durations
from common.http.request_serializer import RequestSerializer


class TokenSerializer(serializers.ModelSerializer[ApiToken]):
    """A token without its secret, which is not kept."""

    user = serializers.CharField(source="user.username", read_only=True)

    class Meta:
        model = ApiToken
        fields = ["id", "name", "user", "hint", "scope", "created_at", "expires_at", "last_used_at", "revoked_at"]
        read_only_fields = fields


class TokenCreateSerializer(RequestSerializer[ApiToken]):
    """What a new token is asked to be."""

    name = serializers.CharField(max_length=100)
    scope = serializers.ChoiceField(choices=[scope.value for scope in Scope], default=Scope.READ.value)
    expires_in = serializers.CharField(
        required=False, help_text="A duration such as `12h`; the platform's default if absent."
    )
    user = serializers.CharField(
        max_length=150,
        required=False,
        help_text="Made if unknown, with the role in team `default` that the scope needs; the caller if absent.",
    )

    def lifetime(self) -> timedelta:
        """Return how long the token is to live."""
        text = self.validated_data.get("expires_in")
        return settings.TOKEN_LIFETIME if text is None else durations.parse(text, field="expires_in")


class CreatedTokenSerializer(TokenSerializer):
    """A token with its secret, shown this once."""

    token = serializers.SerializerMethodField()

    class Meta(TokenSerializer.Meta):
        fields = [*TokenSerializer.Meta.fields, "token"]
        read_only_fields = fields

    def get_token(self, _token: ApiToken) -> str:
        """Return the secret, which the view hands over in the context."""
        return str(self.context["secret"])


class AuditEntrySerializer(serializers.ModelSerializer[AuditEntry]):
    """Who did what to which object; `before` and `after` are null where there was no object."""

    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)
    detail = serializers.DictField()

    class Meta:
        model = AuditEntry
        fields = ["id", "at", "actor", "action", "target", "before", "after", "detail", "request_id"]
        read_only_fields = fields


class WhoAmISerializer(serializers.Serializer[ApiToken]):
    """The caller."""

    user = serializers.CharField(source="user.username")
    token = serializers.CharField(source="name")
    scope = serializers.CharField()
    roles = serializers.DictField(child=serializers.CharField(), help_text="The user's role in each of his teams.")
    expires_at = serializers.DateTimeField()
