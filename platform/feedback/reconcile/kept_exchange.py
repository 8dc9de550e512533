"""What is kept of a recorded request and its answer.

Both come from clients and models: what cannot be read is left out, and nothing is raised.
"""

from collections.abc import Mapping
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
    outputs = _items(exchange.response, "outputs")
    chosen = outputs.get(kept.output) if kept.output else next(iter(outputs.values()), None)
    top = None if chosen is None else _tensor(chosen)
    wanted = [outputs[name] for name in kept.outputs if name in outputs]
    inputs = _items(exchange.request, "inputs").values() if kept.keeps_inputs else ()
    return Content(
        top=[] if top is None else top_of(top),
        values=values_json(
            [each for each in wanted if (each is chosen and top is not None) or _is_readable(each)],
            filter(_is_readable, inputs),
        ),
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


def _items(body: Mapping[str, Any], where: str) -> dict[str, Item]:
    """Return the tensors of a body by name, the first of each."""
    found: dict[str, Item] = {}
    items = body.get(where)
    for item in items[: tensors.MOST_TENSORS] if isinstance(items, list) else ():
        name = item.get("name") if isinstance(item, dict) else None
        if isinstance(name, str):
            found.setdefault(name, item)
    return found


def _is_readable(item: Item) -> bool:
    """Return whether a tensor is what it declares, or too large to be kept, which its size alone decides."""
    return not is_within(item) or _tensor(item) is not None


def _tensor(item: Item) -> Tensor | None:
    try:
        (found,) = tensors.outputs_of({"outputs": [item]}).values()
    except InvalidInput:
        return None
    return found
