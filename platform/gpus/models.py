"""Repartitions: proposals to cut a node's GPUs again, what people decided, and how far they are."""

from django.db import models
from django.db.models import Q

from clusters.models import Cluster
from common.db.choices import choices
from placement.repartition.machine import Phase


class Repartition(models.Model):
    """A node whose GPUs are to be cut anew (`placement.repartition.proposal`); `placement.carrying_out` has its way.

    Attributes:
        before, after: what each GPU is cut into, by its index: [[[profile, count], ...], ...].
        leaving: GPU pods, NAMESPACE/NAME, that have to leave the node first.
        wanted: for what, in words, such as `2 x 3g.40gb`.
        missing: what finds no slice without it (`placement.wanting`); `served` is how many replicas find one by it.
        why: one sentence.
        since: when the phase began. `message` says why it waits, or how it ended.
        held: what was in the way of the last turn's work on the node; empty for nothing.
        config: of the node's label `nvidia.com/mig.config`, for the cut; `config_before` to go back to what was.
        written_at: since when MIG manager's file has the cut; None while it has not.
        settled_at: since when nothing is left to be done to the node; None while it is proposed or under way.
        decided_by, decided_at, decision_reason: who approved or declined it.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="repartitions")
    node = models.CharField(max_length=253)
    product = models.CharField(max_length=63)
    before = models.JSONField()
    after = models.JSONField()
    leaving = models.JSONField()
    wanted = models.TextField()
    missing = models.JSONField()
    served = models.PositiveIntegerField()
    why = models.TextField()
    phase = models.CharField(max_length=10, choices=choices(Phase))
    since = models.DateTimeField()
    message = models.TextField(blank=True)
    held = models.TextField(blank=True, default="", db_default="")
    config = models.CharField(max_length=63)
    config_before = models.CharField(max_length=63)
    written_at = models.DateTimeField(null=True)
    settled_at = models.DateTimeField(null=True)
    proposed_at = models.DateTimeField()
    proposed_by = models.CharField(max_length=300)
    decided_at = models.DateTimeField(null=True)
    decided_by = models.CharField(max_length=300, blank=True, default="", db_default="")
    decision_reason = models.TextField(blank=True, default="", db_default="")
    aborted_at = models.DateTimeField(null=True)
    aborted_by = models.CharField(max_length=300, blank=True, default="", db_default="")
    abort_reason = models.TextField(blank=True, default="", db_default="")

    class Meta:
        db_table = "deployments_repartition"
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "node"], condition=Q(settled_at=None), name="repartition_one_open_of_a_node"
            )
        ]

    def __str__(self) -> str:
        return f"repartition {self.pk}"
