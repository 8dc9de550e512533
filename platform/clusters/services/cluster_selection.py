"""Which cluster a service runs on."""

from datetime import datetime

from django.conf import settings
from django.utils import timezone

from clusters.models import Cluster
from clusters.services.connection import LOCAL, driver_of, file_of
from common.errors import Conflict, NotFound
from deployments.models import InferenceService
from integrations.clusters.base import ClusterDriver


def cluster_default(*, now: datetime) -> Cluster:
    """Return the cluster of services that name none; that of this machine is made where it is not yet.

    Raises:
        NotFound: the setting names a cluster that is not there.
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
    """Make the cluster of this machine where it is the default one and not there yet."""
    if settings.DEFAULT_CLUSTER == LOCAL:
        cluster_default(now=now)


def driver_default() -> ClusterDriver:
    """Return the driver of the default cluster, where models are asked that no service runs yet."""
    return driver_of(cluster_default(now=timezone.now()))


def measured_on_default() -> tuple[str, ...]:
    """Return the GPUs and slices of the default cluster on which new versions are measured."""
    file = file_of(cluster_default(now=timezone.now()))
    return () if file is None else file.options.jobs_on


def cluster_chosen(name: str, *, now: datetime) -> Cluster:
    """Return the cluster that a service file names; an empty name is that of the default one. Raises NotFound."""
    if name in ("", settings.DEFAULT_CLUSTER):
        return cluster_default(now=now)
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(
            f"spec.cluster names the cluster {name[:80]!r}, which is not there{_there()}", field="spec.cluster"
        )
    return cluster


def cluster_for(*, namespace: str, name: str, asked: str, now: datetime) -> Cluster:
    """Return the cluster of the service as it is, or as a file for a new one asks. Raises NotFound."""
    there = Cluster.objects.filter(services__namespace=namespace, services__name=name).first()
    return there or cluster_chosen(asked, now=now)


def cluster_of(*, namespace: str, name: str) -> Cluster:
    """Return the cluster that a service runs on; raises NotFound."""
    cluster = Cluster.objects.filter(services__namespace=namespace, services__name=name).first()
    if cluster is None:
        raise NotFound(f"there is no service {namespace}/{name}")
    return cluster


def check_stays(service: InferenceService, asked: str) -> None:
    """Raise Conflict where a file asks for another cluster than the service runs on."""
    if asked and asked != service.cluster.name:
        raise Conflict(
            f"spec.cluster is {asked[:80]!r}, but service {service} runs on {service.cluster.name!r} and cannot move "
            "while it exists; give it another name there, move its clients, and delete this one",
            field="spec.cluster",
        )


def _there() -> str:
    names = ", ".join(Cluster.objects.order_by("name").values_list("name", flat=True)) or "none"
    return f"; there are: {names}"
