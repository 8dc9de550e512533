"""Repartitions: proposals to cut a node's GPUs again, what people decided, and how far they are."""

from django.db import models
from django.db.models import Q

from clusters.models import Cluster
from common.db.choices import choices
from placement.repartition.machine import Phase


class Repartition(models.Model):
    """A repartition of a node's GPUs (`placement.repartition.proposal`; states as `placement.repartition.machine`).

    Attributes:
        before, after: the layout of each GPU, by its index: [[[profile, count], ...], ...].
        leaving: GPU pods, NAMESPACE/NAME, that have to leave the node first.
        wanted: the demand as text, such as `2 x 3g.40gb`.
        missing: the demands without a slice (`placement.slices.demand`); `served` is how many replicas it gives one.
        why: one sentence.
        since: when the phase began. `message` is why it waits, or how it ended.
        held: what blocked the last tick's work on the node; empty for nothing.
        config: of the node's label `nvidia.com/mig.config`, for the new layouts; `config_before` for the former ones.
        written_at: since when MIG manager's file has the configuration; None while it lacks it.
        settled_at: when the work on the node was complete; None while it is proposed or under way.
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
