"""Removal of a service as the reconciler does it: the driver is called until the cluster has nothing of it."""

from integrations.clusters.base import ClusterDriver
from tests.integrations._support.runtimes import until


def is_removed(driver: ClusterDriver, service: str, generation: int, namespace: str = "default") -> bool:
    """Remove the next of what is left; returns whether nothing is."""
    driver.delete(namespace, service, generation)
    seen = driver.observe(namespace, service)
    return not seen.generation and not seen.revisions


def remove(
    driver: ClusterDriver, service: str, generation: int, namespace: str = "default", within_s: float = 120.0
) -> None:
    """Remove a service, and wait until it is gone."""
    until(lambda: is_removed(driver, service, generation, namespace), f"the end of {service}", within_s)
