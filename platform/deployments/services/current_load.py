"""Current load of a service, read from its cluster for a rollout's forecast."""

from collections.abc import Sequence

from django.utils import timezone

from clusters.services.cluster_selection import cluster_of
from clusters.services.connection import driver_now
from integrations.clusters.base import Nodes, Observed, Sample
from integrations.metrics import counters


def survey(namespace: str, name: str) -> tuple[Observed, Nodes]:
    """Return the observation of a service, and the nodes of its cluster; raises Unavailable."""
    driver = driver_now(cluster_of(namespace=namespace, name=name), timezone.now())
    return driver.observe(namespace, name), driver.inventory(with_nodes=True)


def look(namespace: str, name: str) -> Sequence[Sample]:
    """Return the present counters of a service; raises Unavailable."""
    driver = driver_now(cluster_of(namespace=namespace, name=name), timezone.now())
    return counters.collect(driver.observe(namespace, name), driver.metrics_page)
