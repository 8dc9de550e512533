"""Difference of a pinned pod template from the one that a new revision would get now, as text. Pure.

Images come first, then fields by path; values of variables are left out. A value that Kubernetes leaves out when it
stores an object, such as an empty text, is none.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from integrations.clusters.kubernetes.manifests.names import companion_of
from integrations.clusters.kubernetes.manifests.pinned import without_restart

_MOST = 6
_LONGEST = 100
_PODS = ("containers", "initContainers")
_IDENTITIES = ("name", "mountPath", "containerPort", "topologyKey")
Template = Mapping[str, Any]


def template_changes(pinned: Mapping[str, Template], present: Mapping[str, Template]) -> str:
    """Return how pod templates differ, such as `image a:1 -> a:2; terminationGracePeriodSeconds 40 -> 70`.

    Args:
        pinned, present: pod templates of one revision, by Deployment.

    Returns:
        One line; empty where they are the same.
    """
    found: list[str] = []
    for name in sorted(pinned.keys() | present.keys()):
        kind = companion_of(name)
        of = "" if kind is None else f"{kind}: "
        if name not in pinned or name not in present:
            found.append(f"{of}a Deployment more or less")
            continue
        one, other = without_restart(pinned[name]), without_restart(present[name])
        found += [f"{of}{each}" for each in dict.fromkeys((*_images(one, other), *_fields(one, other)))]
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def _images(one: Template, other: Template) -> Iterator[str]:
    """Yield each change of an image once, though several containers have it."""
    for _, before, after in _walk(_containers(one, "image"), _containers(other, "image"), ""):
        yield f"image {_shown(before)} -> {_shown(after)}"


def _containers(template: Template, field: str) -> dict[str, object]:
    spec = template.get("spec") or {}
    return {each["name"]: each.get(field) for kind in _PODS for each in spec.get(kind) or () if "name" in each}


def _fields(one: Template, other: Template) -> Iterator[str]:
    for path, before, after in _walk(one, other, ""):
        place = path.removeprefix("spec.")
        if place.endswith("].image") and place.startswith(_PODS):
            continue
        if isinstance(before, (Mapping, list)) or isinstance(after, (Mapping, list)) or "].env[" in place:
            how = "added" if _is_none(before) else "removed" if _is_none(after) else "changed"
            yield f"{place} {how}"
        else:
            yield f"{place} {_shown(before)} -> {_shown(after)}"


def _walk(one: object, other: object, path: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield path, pinned and present value of each difference; elements of lists are compared by their names."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            name = f"[{key}]" if "/" in key else f".{key}" if path else key
            yield from _walk(one.get(key), other.get(key), f"{path}{name}")
    elif (identity := _identity(one, other)) and isinstance(one, list) and isinstance(other, list):
        before, after = ({str(each[identity]): each for each in elements} for elements in (one, other))
        for key in sorted(before.keys() | after.keys()):
            yield from _walk(before.get(key), after.get(key), f"{path}[{key}]")
    elif not _is_same(one, other):
        yield path, one, other


def _identity(one: object, other: object) -> str:
    """Return the field by which the elements of two lists are known; empty where they have none."""
    if not isinstance(one, list) or not isinstance(other, list) or not (one or other):
        return ""
    elements = [*one, *other]
    names = (name for name in _IDENTITIES if all(isinstance(each, Mapping) and name in each for each in elements))
    found = next(names, "")
    is_unique = all(len({str(each[found]) for each in part}) == len(part) for part in (one, other)) if found else False
    return found if is_unique else ""


def _is_same(one: object, other: object) -> bool:
    return one == other or (_is_none(one) and _is_none(other))


def _is_none(value: object) -> bool:
    return value is None or value in ("", [], {}, ())


def _shown(value: object) -> str:
    if _is_none(value):
        return "none"
    text = value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
