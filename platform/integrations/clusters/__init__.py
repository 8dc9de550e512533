"""Where models run. `driver_for` is the only way in for the reconciler and for tasks."""

from pathlib import Path

from common.errors import InvalidInput
from integrations.clusters.base import ClusterDriver
from integrations.clusters.local.driver import LocalDriver

__all__ = ["driver_for"]


def driver_for(kind: str, *, cluster_folder: Path) -> ClusterDriver:
    """Return the driver for a cluster of `kind`.

    Raises:
        InvalidInput: no driver of that kind.
    """
    if kind == "local":
        return LocalDriver(folder=cluster_folder)
    raise InvalidInput(f"no cluster driver {kind!r}; the only kind is 'local'", field="kind")
