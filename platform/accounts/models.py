"""Users, API tokens, teams, and the audit log with its hash chain."""

from datetime import datetime
from functools import cached_property
from typing import Any, Never

from django.contrib.auth.models import AbstractUser
from django.db import models

from accounts.domain.approver import Approver
from accounts.domain.demand import Demand
from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope


class User(AbstractUser):
    """A person or a machine, without a password: people sign in at a provider or by an API token, machines send one."""


class Identity(models.Model):
    """A user's account at an OpenID provider: the provider's own name of it, which it never reassigns.

    Attributes:
        sealed_refresh_token: renews the proof that the account is still there; empty where the provider gave
            none.
        checked_at: when the provider last confirmed the account, by a sign-in or when asked; None where that was in a
            release that did not note it.
        tried_at: when the provider was last asked, whatever it answered.
        ended_at: when the provider answered that the account is no longer there; None where it is, or was not asked.
    """

    user = models.OneToOneField(User, on_delete=models.CASCADE, related_name="identity")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    sealed_refresh_token = models.TextField(blank=True, default="", db_default="")
    checked_at = models.DateTimeField(null=True, blank=True)
    tried_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name_plural = "identities"
        constraints = [models.UniqueConstraint(fields=["issuer", "subject"], name="identity_once")]

    def __str__(self) -> str:
        return f"{self.subject} at {self.issuer}"


class Invitation(models.Model):
    """An administrator's leave to link a user to an account of the provider, once; the secret is in a link.

    Attributes:
        digest: of the secret, as of an API token.
        expires_at: also when a newer invitation replaced it.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="invitations")
    digest = models.CharField(max_length=64, unique=True)
    created_by = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"invitation of {self.user}"


class ApiToken(models.Model):
    """An API token of a user; the secret is stored as its SHA-256 only.

    The secret has 256 random bits, so a plain hash cannot be searched; a slow one would only slow down every request.

    Attributes:
        is_session: made by a sign-in at a provider for one browser, which ends it by signing out; its secret is
            unknown.
        needs_proof: ends a day after the provider last confirmed its user's account there.
        made_by: the user who made it, by name (`accounts.domain.approver`); empty where that is not known.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=100)
    digest = models.CharField(max_length=64, unique=True)
    hint = models.CharField(max_length=12)
    scope = models.CharField(max_length=8, choices=[(scope.value, scope.value) for scope in Scope])
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    is_session = models.BooleanField(default=False, db_default=False)
    needs_proof = models.BooleanField(default=False, db_default=False)
    made_by = models.CharField(max_length=150, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(scope__in=[scope.value for scope in Scope]), name="token_scope_known"
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint}…)"

    def allows(self, scope: Scope) -> bool:
        """Return whether the token's scope includes `scope`."""
        return Scope(self.scope).includes(scope)

    @property
    def approver(self) -> Approver:
        """Return its user as the author of a decision."""
        username = self.user.username
        return Approver(username, self.made_by, is_signed_in=self.is_session or self.made_by == username)

    @property
    def made_for_another(self) -> bool:
        """Return whether another user made it."""
        return self.approver.is_of_another

    @cached_property
    def roles(self) -> dict[str, Role]:
        """Return the user's roles by team, read once for each request."""
        rows = Membership.objects.filter(user=self.user_id).values_list("team__name", "role")
        return {team: Role(role) for team, role in rows}

    def is_live(self, now: datetime) -> bool:
        """Return whether the token is valid at `now`."""
        return self.revoked_at is None and now < self.expires_at


class Team(models.Model):
    """Users who own namespaces and models together; the team `default` owns everything without another owner.

    Attributes:
        max_versions, max_bytes: quota of the versions of its models; None for no limit.
        requests_per_second: limit of its keys' requests to all services together; None for no limit.
        rows_per_minute: the same of the rows of these requests.
    """

    name = models.CharField(max_length=63, unique=True)
    created_at = models.DateTimeField()
    max_versions = models.PositiveIntegerField(null=True, blank=True)
    max_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    requests_per_second = models.PositiveIntegerField(null=True, blank=True)
    rows_per_minute = models.PositiveIntegerField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A user's role in a team."""

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=[(role.value, role.value) for role in Role])

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["team", "user"], name="membership_once"),
            models.CheckConstraint(
                condition=models.Q(role__in=[role.value for role in Role]), name="membership_role_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.team}"


class Ownership(models.Model):
    """A namespace or a model, by name, that belongs to a team; it need not exist yet, and may be created again."""

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="owned")
    kind = models.CharField(max_length=9, choices=[(kind.value, kind.value) for kind in Owned])
    name = models.CharField(max_length=128)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["kind", "name"], name="ownership_once")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class DemandRow(models.Model):
    """Demand of a team or of a namespace, which need not exist yet (`accounts.domain.demand`).

    Attributes:
        namespace: empty for the demand of a team.
    """

    team = models.OneToOneField(Team, null=True, on_delete=models.CASCADE, related_name="demand")
    namespace = models.CharField(max_length=63, blank=True, default="")
    policies = models.JSONField(default=list, blank=True)
    approvals = models.PositiveSmallIntegerField(default=0)
    signed_in = models.BooleanField(default=False)
    digests = models.BooleanField(default=False, db_default=False)
    changed_at = models.DateTimeField()
    changed_by = models.CharField(max_length=300)

    class Meta:
        db_table = "accounts_demand"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(team__isnull=True) ^ models.Q(namespace=""), name="demand_of_team_or_namespace"
            ),
            models.UniqueConstraint(
                fields=["namespace"], condition=~models.Q(namespace=""), name="demand_of_namespace_once"
            ),
        ]

    def __str__(self) -> str:
        return f"demand of {self.demand.of}"

    def is_of(self, *, team: str, namespace: str | None) -> bool:
        """Return whether it is the demand of the team or of the namespace; the team must be loaded."""
        return self.namespace == namespace if self.team is None else self.team.name == team

    @property
    def demand(self) -> Demand:
        """Return its value; the team must be loaded."""
        of = f"namespace {self.namespace}" if self.team is None else f"team {self.team.name}"
        return Demand(of, tuple(self.policies), self.approvals, self.signed_in, self.digests)


class AnsweredRequest(models.Model):
    """A POST with an `Idempotency-Key`, and its response, kept for a day.

    Attributes:
        fingerprint: SHA-256 of method, address and body.
        body: the response's JSON; empty where it has a secret.
    """

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="answered_requests")
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(default=0)
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_once")]

    def __str__(self) -> str:
        return f"{self.key} of {self.user}"


class _AppendOnlyQuerySet(models.QuerySet["AuditEntry"]):
    """Refuses changes of history."""

    def update(self, **_: Any) -> Never:
        raise TypeError("audit entries cannot be changed")

    def delete(self) -> Never:
        raise TypeError("audit entries cannot be deleted")

    def bulk_update(self, *_: Any, **__: Any) -> Never:
        raise TypeError("audit entries cannot be changed")


class AuditEntry(models.Model):
    """Audit log entry: actor, action, object, time, and request id. Append-only.

    Names are copied, not referenced: an entry outlives users, tokens and objects.

    Attributes:
        before, after: the object before and after the change; None where it did not exist.
    """

    at = models.DateTimeField(db_index=True)
    actor = models.CharField(max_length=300)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=300)
    detail = models.JSONField(default=dict)
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    request_id = models.CharField(max_length=64, blank=True)

    objects = _AppendOnlyQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["target", "-id"], name="audit_target_newest"),
            # An object's children are found by the prefix of the target, which PostgreSQL's usual order does not serve.
            models.Index(fields=["target"], name="audit_target_begins", opclasses=["varchar_pattern_ops"]),
            models.Index(fields=["request_id"], name="audit_request", condition=~models.Q(request_id="")),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.target}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Insert; refuse updates."""
        if not self._state.adding:
            raise TypeError("audit entries cannot be changed")
        super().save(*args, **kwargs)

    def delete(self, *_: Any, **__: Any) -> Never:
        raise TypeError("audit entries cannot be deleted")


class AuditLink(models.Model):
    """An entry's place in the hash chain (`accounts.domain.audit_chain`); only inserted, and removed by pruning.

    Of two writers at once one fails on the position, so the chain never forks. It refers to entries by number, so that
    a removed entry leaves its link.
    """

    position = models.BigIntegerField(primary_key=True)
    entry = models.BigIntegerField(unique=True)
    linked_at = models.DateTimeField()
    hash = models.CharField(max_length=64)

    def __str__(self) -> str:
        return f"entry {self.entry} at position {self.position}"


class AuditSigningKey(models.Model):
    """A key that signs checkpoints of the audit log; its private part is encrypted."""

    sealed = models.TextField()
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"audit signing key {self.pk}"


class AuditCheckpoint(models.Model):
    """A signed hash of the chain.

    Attributes:
        pruned: entries up to its position were removed on purpose.
        at: when it was signed, in RFC 3339, as it is signed.
    """

    position = models.BigIntegerField(db_index=True)
    entry = models.BigIntegerField()
    hash = models.CharField(max_length=64)
    pruned = models.BooleanField(default=False, db_default=False)
    at = models.CharField(max_length=32)
    signature = models.CharField(max_length=128)

    def __str__(self) -> str:
        return f"checkpoint at position {self.position}"


class AuditSink(models.Model):
    """How far a sink of the audit log is (`accounts.services.audit_sinks`).

    Attributes:
        position: of the last entry in the chain that it took.
        next_try_at: when it is due; also the end of a worker's claim.
        failures: tries in a row that it did not take.
        error: why it did not take the last one; empty where it did.
    """

    name = models.CharField(max_length=20, primary_key=True)
    position = models.BigIntegerField(default=0)
    next_try_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    failures = models.PositiveSmallIntegerField(default=0)
    error = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"audit sink {self.name}"
