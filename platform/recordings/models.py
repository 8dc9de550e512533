"""Recordings of what clients sent to a service, kept for a while with somebody's consent, and replays of them."""

from django.db import models
from django.db.models import Q

from deployments.models import InferenceService
from jobs.models import ClaimedJob


class Recording(models.Model):
    """Requests of a service with stable's answers, in an encrypted file (`recordings.reconcile.payload_files`).

    Attributes:
        consent: the statement in which `created_by` took responsibility for keeping clients' requests.
        share_percent: of the requests, by their `x-request-id`.
        max_requests, max_bytes: it ends at the first limit reached; `bytes` are those of the file.
        bytes: the valid length of the file; the rest was written by a tick that was not recorded.
        expires_at: when it ends, and file and row are deleted.
        ended_at: when it ended; None while it runs. `end_reason` is a sentence.
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
        db_table = "deployments_recording"
        constraints = [
            models.UniqueConstraint(fields=["service"], condition=Q(ended_at=None), name="recording_one_at_a_time")
        ]

    def __str__(self) -> str:
        return f"recording {self.pk}"


class Replay(ClaimedJob):
    """A recording, replayed against a version without clients, and compared; `jobs.domain.attempts`.

    Attributes:
        recording: None after its deletion.
        terms: the comparison policy, as a policy's `analysis.comparison`.
        done: requests answered so far in this attempt, of `total`.
        report, worst: the result of the comparison (`comparison.stored`); empty until it ended.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="replays")
    recording = models.ForeignKey(Recording, null=True, on_delete=models.SET_NULL, related_name="replays")
    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="+")
    terms = models.JSONField(default=dict)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=dict)
    worst = models.JSONField(default=list)

    class Meta:
        db_table = "deployments_replay"
        indexes = [models.Index(fields=["next_try_at"], condition=Q(finished_at=None), name="replay_pending")]

    def __str__(self) -> str:
        return f"replay {self.pk}"
