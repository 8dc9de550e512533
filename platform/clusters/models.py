"""Clusters, as they were applied and as they were seen last."""

from django.db import models

KUBERNETES = "kubernetes"
"""The kind of clusters that are watched."""


class Cluster(models.Model):
    """A cluster that runs services.

    Attributes:
        document: the cluster file as it was last applied, with `stored` instead of secrets; None for `local`.
        credentials: those of the kubeconfig, encrypted; empty without one.
        prometheus_token: bearer token for the Prometheus of its file, encrypted; empty without one.
        exec_token: when the token of its kubeconfig's exec plugin was made and ends, {"issued_at", "expires_at"}; None
            without one that says so.
        changed_at: when its file last changed; None for `local`.
        gateway_url: the address of its gateway for clients; empty for `local`, where a setting has it.
        components: last observation of its components that are no models: name -> {"ready", "restarts", "message"}.
        limits: last observed limits of the machine (`deployments.reconcile.restarts`); empty where it is none.
        event_seq: the number of the newest event of the cluster itself.
        watch: the state of a Kubernetes cluster's watches, reported by their process: {"streaming", "total",
            "problems", "seen_at"}; empty without one.
        gpus: of its nodes, observed at `gpus_at` (`services.gpu_assignment`); None before the first observation.
        prices: what an hour of a replica costs (`services.prices`); empty where not set.
        checked_at: when the worker last tried to observe it; `problem` is why that failed.
        observed_at: when the worker last observed it; `unseen` are the times, each as [begin, end], in which it could
            not or was off (`domain.unseen`).
        silent_since, silent_looks: since when it does not answer, and the failed attempts; None and 0 while it answers.
            `look_at` is the next attempt.
        swept_until: the claim of the sweep that has it now; it expires by itself.
    """

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=20)
    document = models.JSONField(null=True)
    credentials = models.TextField(blank=True)
    prometheus_token = models.TextField(blank=True, default="", db_default="")
    exec_token = models.JSONField(null=True)
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
    observed_at = models.DateTimeField(null=True)
    unseen = models.JSONField(default=list, db_default=models.Value([], output_field=models.JSONField()))
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
