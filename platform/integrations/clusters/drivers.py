"""Cluster driver cache: a driver is made at first use and kept with its connections for all threads."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from integrations.clusters.base import ClusterDriver
from integrations.clusters.kubernetes.access import Access
from integrations.clusters.kubernetes.options import Options
from integrations.clusters.local.driver import LocalDriver

if TYPE_CHECKING:
    from integrations.clusters.kubernetes.driver import KubernetesDriver
    from integrations.clusters.kubernetes.watches import Cache


@dataclass(frozen=True, slots=True)
class LocalCluster:
    """This machine, with an agent that works in `folder`; models whose files are code may run where that is allowed."""

    folder: Path
    allow_python_models: bool = False


@dataclass(frozen=True, slots=True)
class KubernetesCluster:
    """A Kubernetes cluster: how it is reached, and how services are run there."""

    access: Access
    options: Options


Place = LocalCluster | KubernetesCluster

_kept: dict[str, "tuple[Place, LocalDriver | KubernetesDriver]"] = {}
_caches: "dict[str, tuple[Access, Cache]]" = {}
_keeping = threading.Lock()


def driver_for(name: str, place: Place) -> ClusterDriver:
    """Return the driver of the cluster called `name`, the same for all threads of a process until `place` changes.

    Raises:
        InvalidInput: the place does not say how to reach a cluster.
    """
    with _keeping:
        before = _kept.get(name)
        if before is not None and before[0] == place:
            return before[1]
        driver: LocalDriver | KubernetesDriver
        match place:
            case LocalCluster(folder, allow_python_models):
                driver = LocalDriver(folder, allow_python_models=allow_python_models)
            case KubernetesCluster(access, options):
                watched, cache = _caches.get(name, (None, None))
                driver = _on_kubernetes(access, options, cache if watched == access else None)
        _kept[name] = (place, driver)
    if before is not None and not isinstance(before[1], LocalDriver):
        before[1].close()
    return driver


def use_cache(name: str, access: Access, cache: "Cache | None") -> None:
    """Have the driver of the cluster called `name` read from this cache in this process; None ends that.

    Args:
        access: by which the cache is filled; a driver that reaches the cluster otherwise does not read from it.
    """
    with _keeping:
        if cache is None:
            _caches.pop(name, None)
        else:
            _caches[name] = access, cache
        before = _kept.pop(name, None)
    if before is not None and not isinstance(before[1], LocalDriver):
        before[1].close()


@contextmanager
def passing_driver(place: KubernetesCluster) -> Iterator[ClusterDriver]:
    """Yield a driver that is not cached: of a cluster whose file is not saved yet.

    Raises:
        InvalidInput: the place does not say how to reach a cluster.
    """
    driver = _on_kubernetes(place.access, place.options)
    try:
        yield driver
    finally:
        driver.close()


def _on_kubernetes(access: Access, options: Options, cache: "Cache | None" = None) -> "KubernetesDriver":
    """Return a new driver. Kubernetes' client is imported here: it is a sixth of each process's start, and few need it.

    Raises:
        InvalidInput: the access does not say how to reach a cluster.
    """
    from integrations.clusters.kubernetes.api.client import Api  # noqa: PLC0415
    from integrations.clusters.kubernetes.driver import KubernetesDriver  # noqa: PLC0415
    from integrations.clusters.kubernetes.watches.cached_api import CachedApi  # noqa: PLC0415

    return KubernetesDriver(Api(access) if cache is None else CachedApi(access, cache), options)
