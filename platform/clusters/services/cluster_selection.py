"""Cluster selection for services."""

import os
from datetime import datetime

from django.conf import settings

from clusters.models import Cluster
from clusters.services.connection import LOCAL, driver_of, file_of
from common.errors import NotFound
from integrations.clusters.base import ClusterDriver

MOST_JOBS_ON_KUBERNETES = 20


def cluster_default(*, now: datetime) -> Cluster:
    """Return the default cluster, for services that name none; that of this machine is created on first use.

    Raises:
        NotFound: the setting names a cluster that does not exist.
    """
    name = settings.DEFAULT_CLUSTER
    if name == LOCAL:
        return Cluster.objects.get_or_create(name=LOCAL, defaults={"kind": LOCAL, "created_at": now})[0]
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(
            f"FAIRLEAD_DEFAULT_CLUSTER names the cluster {name!r}, which is not there{_there()}; apply its file first"
        )
    return cluster


def cluster_local_made(*, now: datetime) -> None:
    """Create the cluster of this machine where it is the default one and missing."""
    if settings.DEFAULT_CLUSTER == LOCAL:
        cluster_default(now=now)


def driver_default(now: datetime) -> ClusterDriver:
    """Return the driver of the default cluster, where trials of models without a service run."""
    return driver_of(cluster_default(now=now))


def jobs_at_once_default(now: datetime) -> int:
    """Return how many jobs the default cluster runs at once, as `jobs_at_once`."""
    return jobs_at_once(cluster_default(now=now))


def jobs_at_once(cluster: Cluster) -> int:
    """Return how many short jobs of one kind a cluster runs at once: on Kubernetes its scheduler finds room for each.

    On this machine one for each two cores, since a job has threads and memory of its own: from 2 to 8.
    """
    return MOST_JOBS_ON_KUBERNETES if cluster.kind != LOCAL else max(2, min(8, len(os.sched_getaffinity(0)) // 2))


def measured_on_default(now: datetime) -> tuple[str, ...]:
    """Return the GPUs and slices of the default cluster on which new versions are benchmarked."""
    file = file_of(cluster_default(now=now))
    return () if file is None else file.options.jobs_on


def cluster_chosen(name: str, *, now: datetime) -> Cluster:
    """Return the cluster that a service file names; the default one for an empty name. Raises NotFound."""
    if name in ("", settings.DEFAULT_CLUSTER):
        return cluster_default(now=now)
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(
            f"spec.cluster names the cluster {name[:80]!r}, which is not there{_there()}", field="spec.cluster"
        )
    return cluster


def cluster_for(*, namespace: str, name: str, asked: str, now: datetime) -> Cluster:
    """Return the cluster of an existing service, or the one that the file of a new service names. Raises NotFound."""
    there = Cluster.objects.filter(services__namespace=namespace, services__name=name).first()
    return there or cluster_chosen(asked, now=now)


def cluster_of(*, namespace: str, name: str) -> Cluster:
    """Return the cluster that a service runs on; raises NotFound."""
    cluster = Cluster.objects.filter(services__namespace=namespace, services__name=name).first()
    if cluster is None:
        raise NotFound(f"there is no service {namespace}/{name}")
    return cluster


def _there() -> str:
    names = ", ".join(Cluster.objects.order_by("name").values_list("name", flat=True)) or "none"
    return f"; there are: {names}"
