"""What clients sent to a service, kept for a while with somebody's consent."""

from django.db import models
from django.db.models import Q

from deployments.models.services import InferenceService


class Recording(models.Model):
    """Requests of a service with stable's answers; they are in a file (`deployments.payloads.files`), sealed.

    Attributes:
        consent: the words in which `created_by` took responsibility for keeping what clients sent.
        share_percent: of the requests, by their `x-request-id`.
        max_requests, max_bytes: it ends with whichever comes first; `bytes` are those of the file.
        bytes: how much of the file counts; what lies behind was written by a turn that was not recorded.
        expires_at: then it ends, and file and row are deleted.
        ended_at: since when nothing is added; None while it runs. `end_reason` says why, in a sentence.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="recordings")
    consent = models.TextField()
    share_percent = models.FloatField()
    max_requests = models.PositiveIntegerField()
    max_bytes = models.BigIntegerField()
    requests = models.PositiveIntegerField(default=0)
    bytes = models.BigIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    expires_at = models.DateTimeField(db_index=True)
    ended_at = models.DateTimeField(null=True)
    end_reason = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["service"], condition=Q(ended_at=None), name="recording_one_at_a_time")
        ]

    def __str__(self) -> str:
        return f"recording {self.pk}"
