"""Diff of two files by field path, one line per field. Pure."""

import json

_ABSENT = object()


def lines(before: object, after: object) -> list[str]:
    """Return the changes: `spec.minReplicas: 1 -> 2`, `+ spec.x: 1`, `- spec.y: 2`; equal values are left out.

    None means absent.
    """
    old = _flat(before) if before is not None else {}
    new = _flat(after) if after is not None else {}
    found = []
    for path in dict.fromkeys([*old, *new]):
        was, becomes = old.get(path, _ABSENT), new.get(path, _ABSENT)
        if was is _ABSENT:
            found.append(f"+ {path}: {_shown(becomes)}")
        elif becomes is _ABSENT:
            found.append(f"- {path}: {_shown(was)}")
        elif _shown(was) != _shown(becomes):
            found.append(f"  {path}: {_shown(was)} -> {_shown(becomes)}")
    return found


def _flat(value: object, path: str = "") -> dict[str, object]:
    """Return the innermost values by their paths; an empty object or list is a value."""
    if isinstance(value, dict) and value:
        parts = [(f"{path}.{key}" if path else str(key), item) for key, item in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{path}[{index}]", item) for index, item in enumerate(value)]
    else:
        return {path: value}
    return {name: item for at, part in parts for name, item in _flat(part, at).items()}


def _shown(value: object) -> str:
    return value if isinstance(value, str) and value else json.dumps(value)
