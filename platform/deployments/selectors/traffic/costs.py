"""Recent cost of a service's inferences."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from clusters.domain.pricing import Cost, Used, cost_of
from clusters.models import Cluster
from clusters.selectors import prices_of
from deployments import mapping
from deployments.models import InferenceService, Revision, TrafficPoint

OVER = timedelta(hours=1)


def service_cost(*, service: InferenceService, now: datetime) -> Cost:
    """Return the cost of a thousand inferences of a service in the last hour; its cluster must be loaded."""
    points = TrafficPoint.objects.filter(service=service, at__gt=now - OVER).select_related("revision")
    used = [
        Used(mapping.placed_resources(point.revision).accelerator, point.replicas * point.seconds, point.requests)
        for point in points.defer("latency")
    ]
    return cost_of(used, prices_of(service.cluster), "the last hour")


def resources_used(cluster: Cluster) -> list[str]:
    """Return the GPUs and slices that replicas of the cluster's services have now, in order."""
    running = Revision.objects.filter(service__cluster=cluster, stopped_at=None).exclude(accelerator="")
    columns = running.only("accelerator", "placement", "cpu_cores", "memory_bytes")
    return sorted({mapping.placed_resources(each).accelerator for each in columns})


def accelerators(namespaces: Iterable[str]) -> dict[tuple[str, str], str]:
    """Return the GPU or slice of a replica by namespace and revision, empty for none, of services that exist."""
    rows = Revision.objects.filter(service__namespace__in=list(namespaces)).select_related("service")
    columns = rows.only("name", "accelerator", "placement", "cpu_cores", "memory_bytes", "service__namespace")
    return {(each.service.namespace, each.name): mapping.placed_resources(each).accelerator for each in columns}
