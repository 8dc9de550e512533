"""Clusters, as they were applied and as they were seen last."""

from django.db import models

KUBERNETES = "kubernetes"
"""The kind of clusters that are watched."""


class Cluster(models.Model):
    """Where services run.

    Attributes:
        document: the cluster file as it was last applied, `stored` in the place of a kubeconfig; None for `local`.
        credentials: those of the kubeconfig that was given, encrypted; empty where none was.
        changed_at: when its file said something new last; None for `local`.
        gateway_url: where clients reach its gateway; empty for `local`, where a setting says so.
        components: what was last seen of the parts that are no models: name -> {"ready", "restarts", "message"}.
        limits: of the machine that it is (`watching`), as they were seen last; empty where it is none.
        event_seq: the number of the newest event of the cluster itself.
        watch: how the watches of a Kubernetes cluster do, by the word of the process that keeps them: {"streaming",
            "total", "problems", "seen_at"}; empty where none does.
        gpus: of its nodes, as they were seen at `gpus_at` (`services.placing`); None where nobody looked yet.
        prices: what an hour of a replica costs (`services.prices`); empty where nobody said.
        checked_at: when the worker looked last; `problem` says why it saw nothing then.
        silent_since, silent_looks: since when it answers nothing, and how often it was asked in vain; None and 0 while
            it answers. `look_at` is when it is asked next.
        swept_until: which sweep has it now; the claim runs out by itself.
    """

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=20)
    document = models.JSONField(null=True)
    credentials = models.TextField(blank=True)
    gateway_url = models.TextField(blank=True)
    changed_at = models.DateTimeField(null=True)
    components = models.JSONField(default=dict)
    limits = models.JSONField(default=list, db_default=models.Value([], output_field=models.JSONField()))
    event_seq = models.BigIntegerField(default=0)
    watch = models.JSONField(default=dict)
    gpus = models.JSONField(null=True)
    gpus_at = models.DateTimeField(null=True)
    prices = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    checked_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)
    silent_since = models.DateTimeField(null=True)
    silent_looks = models.PositiveIntegerField(default=0)
    look_at = models.DateTimeField(null=True)
    swept_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "deployments_cluster"

    def __str__(self) -> str:
        return self.name
