"""Current load of a service, read from its cluster for a rollout's forecast."""

from collections.abc import Sequence
from datetime import datetime

from clusters.services.cluster_selection import cluster_of
from clusters.services.connection import driver_now
from integrations.clusters.base import Nodes, Observed, Sample
from integrations.metrics import counters


def survey(now: datetime, namespace: str, name: str) -> tuple[Observed, Nodes]:
    """Return the observation of a service, and the nodes of its cluster; raises Unavailable."""
    driver = driver_now(cluster_of(namespace=namespace, name=name), now)
    return driver.observe(namespace, name), driver.inventory(with_nodes=True)


def look(now: datetime, namespace: str, name: str) -> Sequence[Sample]:
    """Return the present counters of a service; raises Unavailable."""
    driver = driver_now(cluster_of(namespace=namespace, name=name), now)
    return counters.collect(driver.observe(namespace, name), driver.metrics_page)
