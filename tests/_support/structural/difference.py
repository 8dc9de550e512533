"""The structural difference of two trees: what a feature adds, removes and changes in a base.

A tree is made of maps, lists, texts, numbers, booleans and None, as JSON is. A difference has a change by path:

    path: {was: 1, is: 2}                another value
    path: {is: ..}                       added
    path: {like: KEY, with: {a: b}, but: ..}  added: what its sibling KEY is in the base, with the word `a` replaced
                                         by `b` in all texts, and with the difference `but`
    path: removed
    path: {but: ..}                      the difference of what is at the path
    path: {lines: ..}                    the difference of a text's list of lines
    list: {each: [{but: ..}]}            the same difference in each entry that it fits
    list: {each: [{of: KEYS, but: ..}]}  the same difference in these entries
    list: {order: KEYS}                  all entries of a list whose kept entries moved

Lists are compared by the keys of their entries (keys.py). Kept entries are in the order of the base; an added entry
is after the entry that `after` names (null: it is the first), or else after the entry that is added before it in the
difference, the first of them at the end. A list that this does not describe has its whole `order`.
`application.applied(base, difference(base, new)) == new` holds for all trees; the order of a map's
fields is no part of it.
"""

import json
from collections.abc import Mapping
from typing import Any

from tests._support.structural import renaming
from tests._support.structural.application import DoesNotFitError, applied
from tests._support.structural.keys import keyed
from tests._support.structural.paths import entry, field, joined

Difference = dict[str, Any]
REMOVED = "removed"
_NESTED_FROM = 3  # changes of one list entry
_NAMED_FROM = 3  # entries with the same change


def canonical(tree: Any) -> str:
    """Return the text that two trees share if and only if they are the same: 1, 1.0 and True are not."""
    return json.dumps(tree, sort_keys=True, ensure_ascii=False, allow_nan=False)


def difference(base: Any, new: Any) -> Difference:
    """Return what makes `new` of `base`; empty if they are the same."""
    if canonical(base) == canonical(new):
        return {}
    if isinstance(base, dict) and isinstance(new, dict):
        return _of_maps(base, new)
    if isinstance(base, list) and isinstance(new, list):
        before, after = keyed(base), keyed(new)
        if before.keys() & after.keys() or not _are_values(base + new):
            return _of_lists(before, after)
    change: Difference = {"was": base, "is": new}
    if isinstance(base, str) and isinstance(new, str) and "\n" in base and "\n" in new:
        lines = {"lines": difference(base.split("\n"), new.split("\n"))}
        change = min(change, lines, key=lambda each: len(canonical(each)))
    return {"": change}


def _are_values(items: list[Any]) -> bool:
    return not any(isinstance(each, dict | list) for each in items)


def _of_maps(base: dict[str, Any], new: dict[str, Any]) -> Difference:
    found: Difference = {}
    for name in sorted(base):
        below = difference(base[name], new[name]) if name in new else {"": REMOVED}
        found |= {joined(field(name), path): change for path, change in below.items()}
    known = renaming.Siblings(base)
    for name in sorted(new.keys() - base.keys()):
        found[field(name)] = _added(name, new[name], known)
        known.parts[name] = new[name]
    return found


def _of_lists(base: dict[str, Any], new: dict[str, Any]) -> Difference:
    found: Difference = {}
    kept = [key for key in new if key in base]
    changes = {key: difference(base[key], new[key]) for key in sorted(kept)}
    whole: Difference = {}
    groups = _alike(base, changes)
    if groups:
        whole["each"] = groups
    moved = kept != [key for key in base if key in new]
    if moved:
        whole["order"] = list(new)
    if whole:
        found[""] = whole
    for key in sorted(base):  # the order of the base is no part of a difference
        below = changes.get(key, {"": REMOVED})
        if len(below) >= _NESTED_FROM:
            below = {"": {"but": below}}
        found |= {joined(entry(key), path): change for path, change in below.items()}
    known, previous, last = renaming.Siblings(base), None, None
    for key, item in new.items():
        if key not in base:
            follows = previous == (kept[-1] if last is None and kept else last)
            found[entry(key)] = ({} if moved or follows else {"after": previous}) | _added(key, item, known)
            known.parts[key], last = item, key
        previous = key
    return found


def _alike(base: Mapping[str, Any], changes: dict[str, Difference]) -> list[Any]:
    """Take the differences that several entries share out of `changes`; return them as `each` has them."""
    sharing: dict[str, list[str]] = {}
    for key, change in changes.items():
        if change:
            sharing.setdefault(canonical(change), []).append(key)
    found = []
    for keys in sharing.values():
        change = changes[keys[0]]
        if len(keys) < 2:
            continue
        if keys == [key for key in changes if fits(base[key], change)]:
            found.append({"but": change})
        elif len(keys) >= _NAMED_FROM:
            found.append({"of": keys, "but": change})
        else:
            continue
        for key in keys:
            changes[key] = {}
    return found


def fits(base: Any, change: Difference) -> bool:
    """Say whether a difference can be applied to this base."""
    try:
        applied(base, change)
    except DoesNotFitError:
        return False
    return True


def _added(name: str, value: Any, known: renaming.Siblings) -> Difference:
    """Return the change that adds `value`, as it is or as the sibling that it is most like: the shortest."""
    found: list[Difference] = [{"is": value}]
    alike = known.most_alike(name, value)
    if alike is not None:
        base = known.parts[alike]
        words = renaming.words(base, value)
        for by in (words, {}) if words else ({},):
            but = difference(renaming.renamed(base, by), value)
            found.append({"like": alike} | ({"with": by} if by else {}) | ({"but": but} if but else {}))
    return min(found, key=lambda change: len(canonical(change)))
