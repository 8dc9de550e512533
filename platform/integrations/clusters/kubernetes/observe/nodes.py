"""Free capacity of nodes, from nodes and pods of the API server. Pure.

A pod counts as the scheduler counts it: the sum of its containers' requests, or the largest request of one of its init
containers, plus its overhead (Kubernetes: "Resource sharing within containers").
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from integrations.clusters.base import Node

Json = Mapping[str, Any]
_QUANTITY = re.compile(r"([0-9.]+(?:[eE][+-]?[0-9]+)?)([A-Za-z]*)")
_UNITS = (
    {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3}
    | {letter: 1000.0**power for power, letter in enumerate("kMGTPE", start=1)}
    | {f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)}
)
_KEEPS_OUT = ("NoSchedule", "NoExecute")


def room(nodes: Sequence[Json], pods: Sequence[Json]) -> tuple[Node, ...]:
    """Return each node with the capacity that its pods leave, by name."""
    taken = _taken(pods)
    return tuple(
        Node(
            name=name,
            cpu_cores=quantity(each["status"]["allocatable"].get("cpu", "0")) - taken["cpu", name],
            memory_bytes=int(quantity(each["status"]["allocatable"].get("memory", "0")) - taken["memory", name]),
            pods=int(quantity(each["status"]["allocatable"].get("pods", "0")) - taken["pods", name]),
            closed=_closed(each),
        )
        for each in sorted(nodes, key=lambda node: str(node["metadata"]["name"]))
        if (name := str(each["metadata"]["name"]))
    )


def waiting(pods: Sequence[Json]) -> int:
    """Return the number of unscheduled pods."""
    return sum(not each["spec"].get("nodeName") for each in pods if is_alive(each))


def quantity(text: str) -> float:
    """Return a Kubernetes quantity as a number of its base unit; 0 for an invalid one."""
    found = _QUANTITY.fullmatch(str(text))
    return float(found[1]) * _UNITS.get(found[2], 0.0) if found else 0.0


def _taken(pods: Sequence[Json]) -> Counter[tuple[str, str]]:
    taken: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and is_alive(pod):
            taken["pods", node] += 1
            for resource in ("cpu", "memory"):
                taken[resource, node] += _request(pod["spec"], resource)  # type: ignore[assignment]
    return taken


def _request(spec: Json, resource: str) -> float:
    return most_at_once(spec, lambda each: _of(each, resource)) + quantity(spec.get("overhead", {}).get(resource, "0"))


def most_at_once(spec: Json, of: Callable[[Json], float]) -> float:
    """Return the total of a pod's containers, given the value of each one."""
    before = spec.get("initContainers", ())
    beside = [each for each in before if each.get("restartPolicy") == "Always"]
    running = sum(of(each) for each in (*spec["containers"], *beside))
    return max(running, max((of(each) for each in before), default=0.0))


def _of(container: Json, resource: str) -> float:
    return quantity(container.get("resources", {}).get("requests", {}).get(resource, "0"))


def is_alive(pod: Json) -> bool:
    """Return whether a pod still holds the resources that it requested."""
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def _closed(node: Json) -> str:
    """Return why a node accepts none of our pods, which have no tolerations; empty where it does."""
    return next(reasons(node), "")


def reasons(node: Json) -> Iterator[str]:
    """Yield why a node accepts no pod without tolerations."""
    if node["spec"].get("unschedulable"):
        yield "is cordoned"
    for taint in node["spec"].get("taints") or ():
        if taint["effect"] in _KEEPS_OUT:
            yield f"has the taint {taint['key']}"
