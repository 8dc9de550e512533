"""How a service does right now, for the plan of a rollout: its cluster is asked."""

from collections.abc import Sequence

from django.utils import timezone

from clusters.services.cluster_selection import cluster_of
from clusters.services.connection import driver_now
from integrations.clusters.base import Nodes, Observed, Sample
from integrations.metrics import counters


def survey(namespace: str, name: str) -> tuple[Observed, Nodes]:
    """Return a service as it is, and the nodes of its cluster; raises Unavailable."""
    driver = driver_now(cluster_of(namespace=namespace, name=name), timezone.now())
    return driver.observe(namespace, name), driver.inventory(with_nodes=True)


def look(namespace: str, name: str) -> Sequence[Sample]:
    """Return the counters of a service as they are now; raises Unavailable."""
    driver = driver_now(cluster_of(namespace=namespace, name=name), timezone.now())
    return counters.collect(driver.observe(namespace, name), driver.metrics_page)
