"""What is left of nodes."""

from typing import Any

import pytest

from integrations.clusters.base import Node
from integrations.clusters.kubernetes.observe.nodes import quantity, room, waiting


def node(name: str = "one", **spec: Any) -> dict[str, Any]:
    allocatable = {"cpu": "3920m", "memory": "8Gi", "pods": "110"}
    return {"metadata": {"name": name}, "spec": spec, "status": {"allocatable": allocatable}}


def pod(cpu: str, memory: str, on: str = "one", phase: str = "Running", **spec: Any) -> dict[str, Any]:
    container = {"resources": {"requests": {"cpu": cpu, "memory": memory}}}
    own = {"containers": [container], **spec, **({"nodeName": on} if on else {})}
    return {"spec": own, "status": {"phase": phase}}


@pytest.mark.parametrize(
    ("text", "value"),
    [("250m", 0.25), ("4", 4.0), ("1.5", 1.5), ("2Ki", 2048.0), ("1e3", 1000.0), ("3G", 3e9), ("100u", 1e-4)],
)
def test_quantities_as_kubernetes_writes_them(text: str, value: float) -> None:
    assert quantity(text) == pytest.approx(value)


def test_what_pods_request_is_taken_off() -> None:
    init = {"initContainers": [{"resources": {"requests": {"cpu": "1", "memory": "64Mi"}}}], "overhead": {"cpu": "20m"}}
    pods = [
        pod("400m", "1Gi", **init),
        pod("500m", "512Mi"),
        pod("9", "9Gi", on="two"),
        pod("9", "9Gi", phase="Failed"),
    ]
    (left,) = room([node()], pods)
    assert left == Node("one", pytest.approx(3.92 - 1.02 - 0.5), int(6.5 * (1 << 30)), 108)


def test_a_container_that_starts_before_and_stays_counts_like_the_others() -> None:
    beside = {"initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "1"}}}]}
    (left,) = room([node()], [pod("500m", "1Gi", **beside)])
    assert left.cpu_cores == pytest.approx(3.92 - 1.5)


@pytest.mark.parametrize(
    ("spec", "closed"),
    [
        ({"unschedulable": True}, "is cordoned"),
        ({"taints": [{"key": "gpu", "effect": "NoSchedule"}]}, "has the taint gpu"),
        ({"taints": [{"key": "gpu", "effect": "PreferNoSchedule"}]}, ""),
    ],
)
def test_nodes_that_take_nothing_of_ours(spec: dict[str, Any], closed: str) -> None:
    assert room([node(**spec)], [])[0].closed == closed


def test_pods_without_a_node_wait() -> None:
    assert waiting([pod("1", "1Gi", on=""), pod("1", "1Gi")]) == 1
