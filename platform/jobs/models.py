"""Claimed jobs: rows that a worker holds by a lease while it works (`jobs.services.claim`)."""

from django.db import models

from common.db.choices import choices
from jobs.domain.attempts import Status


class ClaimedJob(models.Model):
    """A job in a row; its states are those of `jobs.domain.attempts`.

    Attributes:
        reason: why it failed, or what is in its way.
        claim: of the worker that has it now; None where none does.
        attempts: how often it was begun.
        next_try_at: since when a worker may begin it, or another one take it over; None once it has ended.
    """

    status = models.CharField(max_length=10, choices=choices(Status), default=Status.PENDING)
    reason = models.TextField(blank=True)
    claim = models.UUIDField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        abstract = True
