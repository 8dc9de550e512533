"""Usage of services by hour and caller, what was read of the access log, and budgets."""

from django.db import models

from accounts.models import Team


class HourlyUsage(models.Model):
    """Requests of one hour by service, revision and caller; `usage.domain.line` says what is counted.

    Names are text: a caller's key and team are what its token said, also after they are deleted.

    Attributes:
        accelerator: the GPU or slice of each of the revision's replicas, empty for none; it decides the price.
    """

    hour = models.DateTimeField()
    namespace = models.CharField(max_length=150)
    service = models.CharField(max_length=150)
    revision = models.CharField(max_length=150, blank=True)
    team = models.CharField(max_length=150, blank=True)
    key = models.CharField(max_length=150, blank=True)
    token_id = models.CharField(max_length=150, blank=True)
    user = models.CharField(max_length=150, blank=True)
    accelerator = models.CharField(max_length=253, blank=True)
    requests = models.BigIntegerField(default=0, db_default=0)
    errors = models.BigIntegerField(default=0, db_default=0)
    rows = models.BigIntegerField(default=0, db_default=0)
    bytes_in = models.BigIntegerField(default=0, db_default=0)
    bytes_out = models.BigIntegerField(default=0, db_default=0)
    model_us = models.BigIntegerField(default=0, db_default=0)
    last_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["hour", "namespace", "service", "revision", "team", "key", "token_id", "user"],
                name="usage_once",
            )
        ]
        indexes = [
            models.Index(fields=["team", "hour"], name="usage_of_team"),
            models.Index(fields=["key", "hour"], name="usage_of_key"),
            models.Index(fields=["namespace", "service", "hour"], name="usage_of_service"),
            models.Index(fields=["token_id", "last_at"], name="usage_of_token"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.service} {self.hour:%Y-%m-%dT%H}"


class LogPosition(models.Model):
    """How far a file of the access log was read, written with the sums of what was read.

    Attributes:
        file: the inode and the digest of the first line: names change, and inodes are used again.
        deleted_at: when the file was deleted. The row stays for as long as another reader may have it open.
    """

    file = models.CharField(max_length=100, unique=True)
    offset = models.BigIntegerField()
    read_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.file} {self.offset}"


class LogReading(models.Model):
    """What was ever read of the access log; one row.

    Attributes:
        bad: lines that were skipped since they are not the gateway's.
        dropped_bytes: of files that were deleted for their size before they were read.
    """

    lines = models.BigIntegerField(default=0, db_default=0)
    bad = models.BigIntegerField(default=0, db_default=0)
    dropped_bytes = models.BigIntegerField(default=0, db_default=0)
    read_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.lines} lines"


class Collector(models.Model):
    """What a process that counts usage on Kubernetes stored last, written with the sums.

    Attributes:
        name: of the process.
        batch: the number of the last batch; one with this number is not stored a second time.
    """

    name = models.CharField(max_length=100, unique=True)
    batch = models.BigIntegerField(default=0, db_default=0)
    stored_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.name} {self.batch}"


def _one_owner(name: str) -> models.CheckConstraint:
    """Return the constraint that a row is of a team, or of a key, or of a service."""
    owners = ("team", "key", "service")
    is_of = [models.Q(**{f"{each}__isnull": each != owner for each in owners}) for owner in owners]
    return models.CheckConstraint(condition=is_of[0] | is_of[1] | is_of[2], name=name)


class Budget(models.Model):
    """The most that a team's keys, a key or a service should use in a calendar month (UTC); None for no limit.

    The release before joins the team, which it takes to be there, so it does not see the rows of keys and services.

    Attributes:
        key: name of a key. Names of keys are given once, so the row is of the same key for good.
        service: `<namespace>/<name>`. The row stays when the service is deleted: it is of the next one of that name.
        is_enforced: whether it is a quota: gateways refuse requests of the owner once a limit is used up.
        used_up_in: the first day of the month in which a limit was last found used up; None before that.
    """

    team = models.OneToOneField(Team, null=True, on_delete=models.CASCADE, related_name="budget")
    key = models.CharField(max_length=150, null=True, unique=True)  # noqa: DJ001 - null is in no unique constraint
    service = models.CharField(max_length=301, null=True, unique=True)  # noqa: DJ001
    requests = models.BigIntegerField(null=True)
    rows = models.BigIntegerField(null=True)
    cost = models.FloatField(null=True)
    is_enforced = models.BooleanField(default=False, db_default=False)
    used_up_in = models.DateField(null=True)

    class Meta:
        constraints = [_one_owner("budget_of_one")]

    def __str__(self) -> str:
        return f"budget of {self.team or self.key or self.service}"


class BudgetNotice(models.Model):
    """A notice that a share of a budget was used; written with its webhook deliveries, once a month each."""

    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="budget_notices")
    key = models.CharField(max_length=150, null=True)  # noqa: DJ001 - as in `Budget`
    service = models.CharField(max_length=301, null=True)  # noqa: DJ001
    month = models.DateField()
    measure = models.CharField(max_length=20)
    percent = models.PositiveSmallIntegerField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            _one_owner("budget_notice_of_one"),
            models.UniqueConstraint(fields=["team", "month", "measure", "percent"], name="budget_notice_once"),
            models.UniqueConstraint(fields=["key", "month", "measure", "percent"], name="budget_notice_of_key_once"),
            models.UniqueConstraint(
                fields=["service", "month", "measure", "percent"], name="budget_notice_of_service_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.team or self.key or self.service} {self.month:%Y-%m} {self.measure} {self.percent}"
