"""Features of recorded exchanges: of a bounded number of them, and of a bounded number of values.

Exchanges come from clients and models: what cannot be read is left out, and nothing is raised.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from common.errors import InvalidInput
from common.tensors import Tensor
from feedback.domain.drift.features import Feature, Kind, Source, Values, features_of
from integrations.clusters.base import Exchange
from integrations.v2 import tensors

MOST_EXCHANGES = 256
MOST_VALUES = 1_000_000


@dataclass(frozen=True, slots=True)
class Taken:
    """Values of features, of so many rows."""

    values: dict[Feature, Values] = field(default_factory=dict)
    rows: int = 0


def taken_from(exchanges: Sequence[Exchange], output: str, *, with_texts: bool) -> Taken:
    """Return the features of a turn's answered exchanges; of more than 256 those of evenly chosen ones.

    Those that have a million values with those before them are left out.

    Args:
        output: name of the scored output; empty for the first one.
        with_texts: short texts of inputs count as classes; else no text that a client sent stays.
    """
    answered = [each for each in exchanges if not each.error_code]
    step = -(-len(answered) // MOST_EXCHANGES) or 1
    found: dict[Feature, list[Values]] = {}
    rows, size = 0, 0
    for exchange in answered[::step]:
        more = _size(exchange.request.get("inputs")) + _size(exchange.response.get("outputs"))
        if size + more > MOST_VALUES:
            continue
        size += more
        features = features_of(_inputs(exchange.request), _output(exchange.response, output))
        rows += max(map(len, features.values()), default=0)
        for feature, values in features.items():
            if feature.kind is Kind.CLASS and feature.source is Source.INPUT and not with_texts:
                continue
            found.setdefault(feature, []).append(values)
    return Taken({feature: _joined(feature, parts) for feature, parts in found.items()}, rows)


def _joined(feature: Feature, parts: list[Values]) -> Values:
    if feature.kind is Kind.CLASS:
        return [str(value) for part in parts for value in part]
    return np.concatenate([np.asarray(part, float) for part in parts])


def _inputs(request: Mapping[str, Any]) -> dict[str, Tensor]:
    try:
        return tensors.inputs_of(request)
    except InvalidInput:
        return {}


def _output(response: Mapping[str, Any], name: str) -> tuple[str, Tensor] | None:
    items = response.get("outputs")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("name"), str) and name in ("", item["name"]):
            try:
                (found,) = tensors.outputs_of({"outputs": [item]}).items()
            except InvalidInput:
                return None
            return found
    return None


def _size(items: object) -> int:
    """Return about how many values tensors have, without reading them."""
    datas = [item.get("data") for item in items if isinstance(item, dict)] if isinstance(items, list) else []
    return sum(
        len(data) + sum(len(text) for text in data if isinstance(text, str)) for data in datas if isinstance(data, list)
    )
