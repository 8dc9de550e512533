"""What is kept of a recorded request and its answer.

Both come from clients and models: what cannot be read is left out, and nothing is raised.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput
from common.tensors import Tensor
from feedback.domain.kept_values import Item, is_within, values_json
from feedback.domain.top_classes import Top, parameters_of, top_of
from feedback.models import Kept
from integrations.clusters.base import Exchange
from integrations.v2 import tensors

MOST_ID_CHARACTERS = 128


@dataclass(frozen=True, slots=True)
class Content:
    """What is kept of one answer; `values` is JSON, not encrypted yet."""

    top: Top
    values: bytes
    parameters: dict[str, str]


def content_of(exchange: Exchange, kept: Kept) -> Content:
    """Return what is kept of an answer."""
    outputs = list(_items(exchange.response, "outputs"))
    chosen = next((item for item in outputs if kept.output in ("", item["name"])), None)
    found = None if chosen is None else _tensor(chosen)
    inputs = list(_items(exchange.request, "inputs")) if kept.keeps_inputs else []
    return Content(
        top=[] if found is None else top_of(found),
        values=values_json(_readable(outputs, kept.outputs), _readable(inputs, None)),
        parameters=parameters_of(exchange.request, kept.parameters),
    )


def is_joinable(request_id: object) -> bool:
    """Return whether a label can name a request by this id."""
    if not isinstance(request_id, str) or not 0 < len(request_id) <= MOST_ID_CHARACTERS or "\0" in request_id:
        return False
    try:
        request_id.encode()
    except UnicodeEncodeError:
        return False
    return True


def _items(body: Mapping[str, Any], where: str) -> Iterator[Item]:
    """Yield the tensors of a body that have a name, the first of each name."""
    items, seen = body.get(where), set[str]()
    for item in items[: tensors.MOST_TENSORS] if isinstance(items, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str) and name not in seen:
            seen.add(name)
            yield item


def _readable(items: Collection[Item], names: Collection[str] | None) -> Iterator[Item]:
    """Yield tensors of these names, of all where None, but those that are not what they declare."""
    for item in items:
        # One that is too large is not read: that it is left out is recorded by its size alone.
        if (names is None or item["name"] in names) and (not is_within(item) or _tensor(item) is not None):
            yield item


def _tensor(item: Item) -> Tensor | None:
    try:
        (found,) = tensors.outputs_of({"outputs": [item]}).values()
    except InvalidInput:
        return None
    return found
