"""Keys of callers, and issuers of other tokens that gateways accept: who may call which services."""

from datetime import datetime

from django.db import models

from accounts.models import Team, User


class SigningKey(models.Model):
    """A key pair that signs tokens; the newest signs, and gateways accept those of all.

    Attributes:
        kid: its name in the head of a token.
        public: the public key in its JSON form (RFC 7517).
        sealed: the private key in its JSON form, encrypted (`common.encryption`).
    """

    kid = models.CharField(max_length=32, unique=True)
    public = models.JSONField()
    sealed = models.TextField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.kid


class AccessKey(models.Model):
    """A key: a name that services and usage know a caller by, with the token or, while it is rotated, tokens for it.

    The row stays when the key is revoked: another key of its name would have what services permit that name.

    Attributes:
        user: the person whose key it is; None for a program's.
        services: patterns of the services that it may call (`access.domain.patterns`).
        lifetime_s: of each of its tokens.
        requests_per_second: limit of its requests to all services together; None limits nothing.
        rows_per_minute: the same of the rows of these requests.
    """

    name = models.CharField(max_length=63, unique=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="access_keys")
    user = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="access_keys")
    services = models.JSONField()
    lifetime_s = models.PositiveIntegerField()
    requests_per_second = models.PositiveIntegerField(null=True)
    rows_per_minute = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"key {self.name}"


class KeyToken(models.Model):
    """A signed token of a key; it is not stored, only its id.

    Attributes:
        token_id: the `jti` of the token.
        revoked_at: from when gateways refuse it; in the future after a rotation, until the overlap ends.
    """

    key = models.ForeignKey(AccessKey, on_delete=models.CASCADE, related_name="tokens")
    token_id = models.CharField(max_length=32, unique=True)
    issued_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["revoked_at", "expires_at"], name="key_token_revoked")]

    def __str__(self) -> str:
        return self.token_id

    def is_valid(self, now: datetime) -> bool:
        """Return whether gateways accept it at `now`."""
        return now < self.expires_at and (self.revoked_at is None or now < self.revoked_at)


class TokenIssuer(models.Model):
    """An OpenID provider or a Kubernetes cluster whose tokens gateways accept beside keys.

    Attributes:
        name: what access policies name it by.
        issuer, audience: `iss` and `aud` of its tokens.
        public: its keys, as `access.domain.issuers.public_keys` returns them.
        are_given: whether a person gave the keys; else they are fetched from the issuer.
        fetched_at: when the keys came.
        failure: why they could not be fetched again; empty after a success.
    """

    name = models.CharField(max_length=63, unique=True)
    issuer = models.CharField(max_length=500)
    audience = models.CharField(max_length=200)
    public = models.JSONField()
    are_given = models.BooleanField()
    fetched_at = models.DateTimeField()
    failure = models.CharField(max_length=500, default="", db_default="")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    def __str__(self) -> str:
        return f"issuer {self.name}"
