"""Where is a model asked that no service runs yet? Whoever knows the clusters says so; the registry knows none."""

from collections.abc import Callable

from integrations.clusters.base import ClusterDriver

Choose = Callable[[], ClusterDriver]
"""Returns the driver of the cluster to ask on; raises what making it raises."""

_chosen: list[Choose] = []


def register(choose: Choose) -> None:
    """Ask where `choose` says from now on."""
    _chosen[:] = [choose]


def driver() -> ClusterDriver:
    """Return the driver of the cluster to ask on."""
    return _chosen[0]()
