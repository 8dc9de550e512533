"""Applies a structural difference to its base: the reader of what `difference.py` writes.

Every word of a difference is checked against the base: a change that does not fit raises DoesNotFitError.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from tests._support.structural.keys import keyed
from tests._support.structural.paths import Segment, parsed
from tests._support.structural.renaming import renamed


class DoesNotFitError(Exception):
    """The base does not have what the difference changes, or has what it adds."""


class _Node:
    """The changes at and below one place, in the order in which the difference has them."""

    def __init__(self) -> None:
        self.change: Any = None
        self.below: dict[Segment, _Node] = {}


def applied(base: Any, difference: Mapping[str, Any]) -> Any:
    """Return the tree that the difference makes of `base`; shares parts with it."""
    root = _Node()
    for path, change in difference.items():
        node = root
        for segment in parsed(path):
            node = node.below.setdefault(segment, _Node())
        node.change = change
    return _at(base, root)


def _at(base: Any, node: _Node) -> Any:
    change = node.change or {}
    if not change and not node.below:
        return base
    if "but" in change:
        return applied(base, change["but"])
    if "was" in change:
        if not _same(base, change["was"]):
            raise DoesNotFitError(f"the base has {base!r}, not {change['was']!r}")
        return change["is"]
    if "lines" in change:
        if not isinstance(base, str):
            raise DoesNotFitError(f"the base has {base!r}, where lines of it are changed")
        return "\n".join(applied(base.split("\n"), change["lines"]))
    if isinstance(base, list):
        return _in_list(keyed(base), node)
    if isinstance(base, dict) and not change:
        return _in_map(base, node)
    raise DoesNotFitError(f"the base has {base!r}, where parts of it are changed")


def _same(one: Any, other: Any) -> bool:
    """Compare as texts of Python are: 1, 1.0 and True differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_same(*pair) for pair in zip(one, other, strict=True))
    return type(one) is type(other) and repr(one) == repr(other)


def _in_map(base: dict[str, Any], node: _Node) -> dict[str, Any]:
    found, known = dict(base), dict(base)
    for name, below in _named(node, "field"):
        if _is_added(below.change):
            found[name] = known[name] = _new(name, below.change, known)
        elif name not in base:
            raise DoesNotFitError(f"the base has no {name}")
        elif below.change == "removed":
            del found[name]
        else:
            found[name] = _at(base[name], below)
    return found


def _in_list(base: dict[str, Any], node: _Node) -> list[Any]:
    change = node.change or {}
    found, known, order = dict(base), dict(base), list(base)
    added = []
    for key, below in _named(node, "entry"):
        if _is_added(below.change):
            found[key] = known[key] = _new(key, below.change, known)
            added.append((key, below.change))
        elif key not in base:
            raise DoesNotFitError(f"the base has no entry {key}")
        elif below.change == "removed":
            del found[key]
            order.remove(key)
        else:
            found[key] = _at(base[key], below)
    kept = [key for key in base if key in found]
    for group in change.get("each", ()):
        found |= _in_each(base, kept, group)
    if "order" in change:
        order = change["order"]
        if sorted(order) != sorted(found):
            raise DoesNotFitError(f"the order names {order}, of the entries {list(found)}")
    else:
        last = order[-1] if order else None
        for key, how in added:
            order.insert(_place(order, how.get("after", last)), key)
            last = key
    return [found[key] for key in order]


def _in_each(base: dict[str, Any], kept: list[str], group: Mapping[str, Any]) -> dict[str, Any]:
    if "of" in group:
        if not set(group["of"]) <= set(kept):
            raise DoesNotFitError(f"the base has not all entries of {group['of']}")
        return {key: applied(base[key], group["but"]) for key in group["of"]}
    found = {}
    for key in kept:
        try:
            found[key] = applied(base[key], group["but"])
        except DoesNotFitError:
            continue
    return found


def _place(order: list[str], after: str | None) -> int:
    if after is None:
        return 0
    if after not in order:
        raise DoesNotFitError(f"there is no entry {after} to come after")
    return order.index(after) + 1


def _named(node: _Node, kind: str) -> Iterable[tuple[str, _Node]]:
    for (found, name), below in node.below.items():
        if found != kind:
            raise DoesNotFitError(f"{name} is looked for as a {kind}, and named as a {found}")
        yield name, below


def _is_added(change: Any) -> bool:
    return isinstance(change, dict) and ("like" in change or ("is" in change and "was" not in change))


def _new(key: str, change: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if key in known:
        raise DoesNotFitError(f"the base has {key} already")
    if "is" in change:
        return change["is"]
    if change["like"] not in known:
        raise DoesNotFitError(f"there is no {change['like']} that {key} could be like")
    return applied(renamed(known[change["like"]], change.get("with", {})), change.get("but", {}))
