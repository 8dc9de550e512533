"""Natural keys of list entries: what a reader calls them by.

The same entry has the same key in two renderings, so that lists are compared by key and not by place.
"""

import json
from typing import Any

_NAMES = (
    "name",
    "cluster_name",
    "header",
    "alert",
    "record",
    "key",
    "mountPath",
    "topologyKey",
    "path",
    "port",
    "type",
)
_QUIET = {"path", "value", "exact", "name", "method", "service", "type", "address", "port_value"}
_RANKS = {name: rank for rank, name in enumerate(("path", "prefix", "safe_regex", "service", "method", "name", "grpc"))}


def natural_key(item: Any) -> str:
    """Return what an entry is called by; "" where it has nothing of the kind."""
    if isinstance(item, str):
        return item.partition("=")[0] if item.startswith("--") else item
    if not isinstance(item, dict):
        return "" if isinstance(item, list) else json.dumps(item)
    if isinstance(item.get("metadata"), dict):
        place = "/".join(str(item["metadata"][name]) for name in ("namespace", "name") if name in item["metadata"])
        return f"{item.get('kind')} {place}"
    if isinstance(item.get("match"), dict):  # a route of Envoy
        return " ".join(_words(item["match"]))
    if isinstance(item.get("endpoint"), dict):  # of Envoy
        return " ".join(_words(item["endpoint"]))
    matches = item.get("matches")
    if isinstance(matches, list) and matches:  # a rule of the Gateway API
        rest = f" and {len(matches) - 1} more" if len(matches) > 1 else ""
        return natural_key(matches[0]) + rest
    if isinstance(item.get("method"), str | dict):  # a match of the Gateway API
        return " ".join(_words({name: value for name, value in item.items() if name != "headers"}))
    return _name(item)


def keyed(items: list[Any]) -> dict[str, Any]:
    """Return the entries by key, in order; the second entry of a key gets `#2`, and so on; `#1` has none."""
    found: dict[str, Any] = {}
    for item in items:
        key, number = natural_key(item), 1
        unique = key or "#1"
        while unique in found:
            number += 1
            unique = f"{key}#{number}"
        found[unique] = item
    return found


def _name(item: dict[str, Any]) -> str:
    for name in _NAMES:
        if isinstance(item.get(name), str | int):
            return str(item[name])
        if isinstance(item.get(name), dict):
            return " ".join(_words(item[name]))
    (only, *more) = item or [""]
    return only if not more and isinstance(item.get(only), dict) else ""


def _words(match: Any) -> list[str]:
    """Return the words of what a route matches, such as `/v2/models/digits/infer :method POST`."""
    if isinstance(match, list):
        return [word for each in match for word in _words(each)]
    if not isinstance(match, dict):
        return [str(match)]
    found = []
    for name in sorted(match, key=lambda name: (_RANKS.get(name, len(_RANKS)), name)):
        words = _words(match[name])
        is_quiet = name in _QUIET or (isinstance(match[name], dict | list) and words)
        found += [word for word in words if word != "Exact"] if is_quiet else [name, *words]
    return found
