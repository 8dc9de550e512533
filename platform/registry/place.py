"""Where is a model asked that no service runs yet? Whoever knows the clusters says so; the registry knows none."""

from collections.abc import Callable

from integrations.clusters.base import ClusterDriver

Choose = Callable[[], ClusterDriver]
"""Returns the driver of the cluster to ask on; raises what making it raises."""
Measured = Callable[[], tuple[str, ...]]
"""Returns the extended resources, GPUs and slices of them, on which models are measured there beside the CPU."""

_chosen: list[tuple[Choose, Measured]] = []


def register(choose: Choose, measured_on: Measured = tuple) -> None:
    """Ask where `choose` says from now on, and measure on `measured_on` too."""
    _chosen[:] = [(choose, measured_on)]


def driver() -> ClusterDriver:
    """Return the driver of the cluster to ask on."""
    return _chosen[0][0]()


def measured_on() -> tuple[str, ...]:
    """Return on which GPUs and slices models are measured there."""
    return _chosen[0][1]()
