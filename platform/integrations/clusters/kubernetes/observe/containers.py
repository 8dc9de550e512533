"""Containers of a service's pods that say how a replica is: the runtime, a companion, a custom predictor. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from integrations.clusters.kubernetes.manifests.workloads.companion import CONTAINERS
from integrations.clusters.kubernetes.manifests.workloads.custom_predictor import PREDICTOR
from integrations.clusters.kubernetes.manifests.workloads.pods import RUNTIME

Json = Mapping[str, Any]


def log_container(names: Iterable[str]) -> str:
    """Return the container whose log is a pod's: the author's own where there is one."""
    found = set(names)
    return next(each for each in (PREDICTOR, *CONTAINERS, RUNTIME) if each in found)


def runtime_of(statuses: Sequence[Json]) -> Json:
    """Return the status of the container that has the counters; empty without one."""
    return next((each for each in statuses if each["name"] in (RUNTIME, *CONTAINERS)), {})


def restarts_of(statuses: Sequence[Json]) -> int:
    """Return how often the containers that answer requests were restarted."""
    answering = {RUNTIME, *CONTAINERS, PREDICTOR}
    return sum(int(each.get("restartCount", 0)) for each in statuses if each["name"] in answering)
