"""Registered models, their immutable numbered versions, and the aliases that point at versions (MLflow's words)."""

from django.db import models

from jobs.models import ClaimedJob
from registry.domain.approval import DECISIONS, Approval, unfit
from registry.domain.import_lifecycle import ImportStatus
from registry.domain.rules import Rules
from registry.domain.version_lifecycle import CheckState, Status

IMAGE_PLATFORM = "container"
"""The platform of a version that represents the image of a custom predictor, and has no files."""
POOL_PLATFORM = "pool"
"""The platform of a version that represents a model pool, and has no files."""
WITHOUT_FILES = (IMAGE_PLATFORM, POOL_PLATFORM)


class RegisteredModel(models.Model):
    """A name under which versions are numbered.

    `latest_number` only rises, so that the number of a deleted version never comes back as another file.
    `compatible_with` (`@alias` or a number, or empty) names the version that new ones must be able to replace.
    `protected_aliases` are the names, sorted, of aliases that only admins of the owning team set, move and delete; with
    `requires_approval` only approved versions can be deployed.
    """

    name = models.CharField(max_length=128, unique=True)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=dict, blank=True)
    compatible_with = models.CharField(max_length=65, blank=True)
    protected_aliases = models.JSONField(default=list, blank=True, db_default=models.Value([], models.JSONField()))
    requires_approval = models.BooleanField(default=False, db_default=False)
    latest_number = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        indexes = [
            models.Index(fields=["created_at", "id"], name="model_created"),
            models.Index(fields=["id"], condition=models.Q(requires_approval=True), name="model_wants_approval"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def rules(self) -> Rules:
        """Return the rules that only admins change."""
        return Rules(self.requires_approval, tuple(self.protected_aliases))


class KeptRules(models.Model):
    """Rules of a deleted model, by its name, with which the next model of that name begins.

    Attributes:
        team: the team that owned the name at the deletion; where another one does now, only administrators of the
            installation remove them.
    """

    name = models.CharField(max_length=128, unique=True)
    requires_approval = models.BooleanField(default=False, db_default=False)
    protected_aliases = models.JSONField(default=list, blank=True, db_default=models.Value([], models.JSONField()))
    team = models.CharField(max_length=63)
    kept_at = models.DateTimeField()
    kept_by = models.CharField(max_length=300)

    class Meta:
        verbose_name_plural = "kept rules"

    def __str__(self) -> str:
        return f"kept rules of {self.name}"

    @property
    def rules(self) -> Rules:
        """Return the rules."""
        return Rules(self.requires_approval, tuple(self.protected_aliases))


class ModelVersion(models.Model):
    """One set of model files, known by its digest. Its files never change; `status` says whether it can be served.

    `claim` is the id of the running check: its holder may write the outcome, until another begins at `next_check_at`.
    `check_begun_at` is when the last one began: teams take turns by it.
    `lineage` is `Lineage.as_json()`. `required_signature` is the signature required at registration
    (`registry.services.compatibility`). `of_installation` says that it was REJECTED for what this installation lacks,
    and is checked again when its files are pushed again. `approval_by` is the user who decided last, at `approval_at`,
    and why.
    """

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=71)
    artifact_uri = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    source_name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=dict, blank=True)
    lineage = models.JSONField(default=dict, blank=True)
    required_signature = models.JSONField(default=dict, blank=True)
    platform = models.CharField(max_length=64, blank=True)
    signature = models.JSONField(default=dict, blank=True)
    profile = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=[(s.value, s.value) for s in Status], default=Status.PENDING.value)
    reason = models.TextField(blank=True)
    approval = models.CharField(
        max_length=10,
        choices=[(a.value, a.value) for a in Approval],
        default=Approval.UNREVIEWED.value,
        db_default=Approval.UNREVIEWED.value,
    )
    approval_comment = models.TextField(blank=True, default="", db_default="")
    approval_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    approval_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_check_at = models.DateTimeField(null=True, blank=True)
    claim = models.UUIDField(null=True, blank=True)
    check_begun_at = models.DateTimeField(null=True, blank=True)
    of_installation = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="version_number_once"),
            models.UniqueConstraint(fields=["model", "digest"], name="version_digest_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in Status]), name="version_status_known"
            ),
            models.CheckConstraint(
                condition=models.Q(approval=Approval.UNREVIEWED.value, approval_at=None)
                | models.Q(approval__in=[decision.value for decision in DECISIONS], approval_at__isnull=False),
                name="version_approval_known",
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_check_at"], condition=models.Q(status=Status.PENDING.value), name="version_pending_checks"
            ),
            models.Index(
                fields=["check_begun_at"],
                condition=models.Q(check_begun_at__isnull=False),
                name="version_check_begun",
            ),
            models.Index(fields=["model", "-id"], name="version_newest"),
            models.Index(fields=["model", "size_bytes", "id"], name="version_by_size"),
            models.Index(fields=["model", "platform"], name="version_by_platform"),
            models.Index(fields=["model", "status", "-number"], name="version_by_status"),
            models.Index(fields=["model", "approval", "-number"], name="version_by_approval"),
            models.Index(
                fields=["model", "-id"],
                condition=models.Q(status=Status.READY.value, approval=Approval.UNREVIEWED.value),
                name="version_unreviewed",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model.name} version {self.number}"

    @property
    def uri(self) -> str:
        """Return the version's name in a service file."""
        return f"models:/{self.model.name}/{self.number}"

    @property
    def has_files(self) -> bool:
        """Return whether it is a model: it represents no image of a custom predictor, and no model pool."""
        return self.platform not in WITHOUT_FILES

    @property
    def unfit(self) -> str:
        """Return why it may not be deployed, as the end of a sentence; empty where approval allows it."""
        return unfit(
            Approval(self.approval),
            is_required=self.model.requires_approval,
            by=self.approval_by,
            comment=self.approval_comment,
        )

    def brought_by(self) -> list[str]:
        """Return the user who registered it or imported its files, as the audit log names them."""
        return [self.created_by, *dict.fromkeys(each.created_by for each in self.imports.all())]

    @property
    def check_state(self) -> CheckState:
        """Return the columns of the state machine `version_lifecycle`."""
        return CheckState(Status(self.status), self.attempts, self.reason, self.next_check_at, self.of_installation)


class Alias(models.Model):
    """A movable name of one version of its model."""

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=64)
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="aliases")
    moved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="alias_once")]
        verbose_name_plural = "aliases"

    def __str__(self) -> str:
        return f"{self.model.name}@{self.name}"

    @property
    def is_protected(self) -> bool:
        """Return whether only admins may move or delete it."""
        return self.name in self.model.protected_aliases


class ModelImport(ClaimedJob):
    """Import of files from a URI as a version of a model; `registry.domain.import_lifecycle` draws its states.

    Attributes:
        model: the name of a model, which is created with its first version.
        uri: with its query, which may hold a signature; `shown_uri` is for display.
        particulars: `Particulars` as JSON.
        claim: the id of the running attempt; its holder may write, until another begins at `next_try_at`.
        bytes_total: of all files; None while unknown.
        version: the result, a new version or the existing one with the same files.
    """

    model = models.CharField(max_length=128)
    uri = models.CharField(max_length=4000)
    filename = models.CharField(max_length=255, blank=True)
    sha256 = models.CharField(max_length=64, blank=True)
    particulars = models.JSONField(default=dict)
    status = models.CharField(
        max_length=10, choices=[(s.value, s.value) for s in ImportStatus], default=ImportStatus.PENDING.value
    )
    bytes_done = models.BigIntegerField(default=0)
    bytes_total = models.BigIntegerField(null=True, blank=True)
    version = models.ForeignKey(ModelVersion, null=True, blank=True, on_delete=models.SET_NULL, related_name="imports")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in ImportStatus]), name="import_status_known"
            ),
        ]
        indexes = [
            models.Index(fields=["model", "-id"], name="import_newest"),
            models.Index(
                fields=["next_try_at"], condition=models.Q(status=ImportStatus.PENDING.value), name="import_pending"
            ),
        ]

    def __str__(self) -> str:
        return f"import {self.pk} of {self.model}"

    @property
    def shown_uri(self) -> str:
        """Return the URI without its query."""
        return self.uri.partition("?")[0]

    @property
    def ended_badly(self) -> bool:
        """Return whether it cannot lead to a servable version; queries the version."""
        is_lost = self.version is None or self.version.status == Status.REJECTED.value
        return self.status == ImportStatus.FAILED.value or (self.status == ImportStatus.IMPORTED.value and is_lost)
