"""Metrics of clusters: whether they answer, and when their credentials end."""

from datetime import datetime

from prometheus_client.core import GaugeMetricFamily, Metric

from clusters.models import Cluster
from clusters.services.credential_expiry import expiries


def cluster_families() -> tuple[GaugeMetricFamily, ...]:
    """Return the families without samples."""
    return (
        GaugeMetricFamily("fairlead_cluster_up", "1 while the cluster answers, else 0.", labels=["cluster"]),
        GaugeMetricFamily(
            "fairlead_cluster_observed_age_seconds", "Time since the cluster was last observed.", labels=["cluster"]
        ),
        GaugeMetricFamily(
            "fairlead_credential_expires_timestamp_seconds",
            "When a credential of the cluster ends, in seconds since 1970.",
            labels=["cluster", "kind"],
        ),
        GaugeMetricFamily(
            "fairlead_credential_issued_timestamp_seconds",
            "When a credential that renews itself was made, in seconds since 1970.",
            labels=["cluster", "kind"],
        ),
    )


def cluster_metrics(*, now: datetime) -> tuple[Metric, ...]:
    """Return the metrics of all clusters; one query."""
    up, age, expires, issued = families = cluster_families()
    rows = Cluster.objects.only(
        "name",
        "kind",
        "document",
        "silent_since",
        "observed_at",
        "credentials",
        "prometheus_token",
        "exec_token",
        "checked_at",
    )
    for cluster in rows.order_by("name"):
        if cluster.checked_at is not None:
            up.add_metric([cluster.name], cluster.silent_since is None)
        if cluster.observed_at is not None:
            age.add_metric([cluster.name], max(0.0, (now - cluster.observed_at).total_seconds()))
        for each in expiries(cluster):
            expires.add_metric([cluster.name, each.kind], each.at.timestamp())
            if each.issued_at is not None:
                issued.add_metric([cluster.name, each.kind], each.issued_at.timestamp())
    return families
