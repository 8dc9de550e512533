"""Values of outputs and inputs that are kept of one request, as JSON of a bounded size. Pure."""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

Item = Mapping[str, Any]
"""A tensor in V2's JSON form."""

MOST_BYTES = 64 << 10
"""Of one request's values as JSON."""
_MOST_DIMENSIONS = 32


def values_json(outputs: Iterable[Item], inputs: Iterable[Item]) -> bytes:
    """Return {"outputs": {name: tensor}, "inputs": {name: tensor}} as JSON; empty without any.

    Values beyond the limit are left out, inputs first, and "left_out" says which.
    """
    kept: dict[str, str] = {"outputs": "{}", "inputs": "{}"}
    left_out: list[str] = []
    room = MOST_BYTES
    for kind, items in (("outputs", outputs), ("inputs", inputs)):
        written = _written(items, room)
        if written is None:
            left_out.append(kind)
        else:
            kept[kind] = written
            room -= len(written)
    if left_out:
        kept["left_out"] = _json(f"{' and '.join(left_out)} take more than the {MOST_BYTES >> 10} KiB that are kept")
    elif kept["outputs"] == kept["inputs"] == "{}":
        return b""
    return _object(kept.items()).encode()


def stored_values(content: bytes) -> dict[str, Any]:
    """Return what `values_json` wrote."""
    found: dict[str, Any] = json.loads(content) if content else {"outputs": {}, "inputs": {}}
    return found


def is_within(item: Item) -> bool:
    """Return whether a tensor's values may be few enough to be kept, at little cost."""
    shape, data = item.get("shape"), item.get("data")
    if not isinstance(data, list) or not isinstance(shape, list) or len(shape) > _MOST_DIMENSIONS:
        return False
    if any(isinstance(element, str) for element in data[:1]):
        return sum(len(element) + 2 for element in data if isinstance(element, str)) <= MOST_BYTES
    sizes = [size for size in shape if isinstance(size, int)]
    return max(len(data), math.prod(map(abs, sizes))) * 2 - 1 <= MOST_BYTES


def _written(items: Iterable[Item], room: int) -> str | None:
    """Return tensors by name as JSON; None where that is longer than `room`."""
    found: list[tuple[str, str]] = []
    for item in items:
        text = _json(_tensor(item)) if is_within(item) else None
        room -= len(item["name"]) + len(text or "")
        if text is None or room < 0:
            return None
        found.append((item["name"], text))
    return _object(found)


def _tensor(item: Item) -> dict[str, Any]:
    parameters = item.get("parameters")
    is_base64 = isinstance(parameters, Mapping) and parameters.get("encoding") == "base64"
    written = {key: item[key] for key in ("datatype", "shape", "data")}
    return written | ({"parameters": {"encoding": "base64"}} if is_base64 else {})


def _object(fields: Iterable[tuple[str, str]]) -> str:
    """Return a JSON object of fields whose values are JSON already."""
    return "{" + ",".join(f"{_json(name)}:{text}" for name, text in fields) + "}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))
