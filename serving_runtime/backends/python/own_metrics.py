"""Custom metrics from workers: applies the messages of `worker.metrics`."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from serving_runtime.telemetry.metrics.custom_metrics import OwnMetrics


def take(
    metrics: OwnMetrics, owner: Hashable, message: Mapping[str, Any], answer: Callable[[dict[str, Any]], None]
) -> None:
    """Apply a message; `answer` is called for queries.

    Args:
        owner: the model whose metric it is; it keeps them until `metrics.close(owner)`.
    """
    name, labels = message["name"], message["labels"]
    match message["action"]:
        case "make":
            made = metrics.make(owner, name, message["kind"], message["text"], labels, message["buckets"])
            answer({"call": message["call"], "problem": made, "final": True})
        case "value":
            answer({"call": message["call"], "value": metrics.value(name, labels), "final": True})
        case "drop":
            metrics.drop(owner, name, labels)
        case action:
            metrics.change(name, labels, action, message["value"])
