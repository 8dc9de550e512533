"""Metrics configuration of a model: its labels, and the buckets of its histogram."""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from serving_runtime.common.errors import ModelError

FIRST_RESPONSE = "nv_inference_first_response_histogram_ms"

_LABEL = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = ("model", "version", "reason", "le", "quantile")


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """Metrics of one model.

    Attributes:
        tags: labels of all its series.
        first_response_edges_ms: of the histogram of first responses.
        summaries: whether it keeps quantiles; the server's choice, not the config's.
    """

    tags: Mapping[str, str] = field(default_factory=dict)
    first_response_edges_ms: tuple[float, ...] = (100, 500, 2000, 5000)
    summaries: bool = False


def metrics_config(config: Any) -> MetricsConfig:
    """Return metric_tags and model_metrics of a ModelConfig message; raises ModelError for invalid ones."""
    edges = MetricsConfig().first_response_edges_ms
    for control in config.model_metrics.metric_control:
        edges = _edges(control, config.name)
    return MetricsConfig(_tags(config), edges)


def _tags(config: Any) -> dict[str, str]:
    tags = dict(config.metric_tags)
    for name in tags:
        if not _LABEL.fullmatch(name) or name in _TAKEN:
            raise ModelError(
                f"model '{config.name}': metric_tags: '{name}' cannot be a label; it must be letters, digits and _, "
                f"and none of {', '.join(_TAKEN)}"
            )
    return tags


def _edges(control: Any, model: str) -> tuple[float, ...]:
    where = f"model '{model}': model_metrics.metric_control"
    family = control.metric_identifier.family
    if family != FIRST_RESPONSE:
        raise ModelError(f"{where}: the buckets of '{family}' cannot be chosen; those of {FIRST_RESPONSE} can")
    edges = tuple(control.histogram_options.buckets)
    ascending = all(low < high for low, high in itertools.pairwise(edges))
    if not (edges and ascending and edges[0] > 0 and math.isfinite(edges[-1])):
        raise ModelError(f"{where}: buckets must be ascending numbers > 0, found {list(edges)}")
    return edges
