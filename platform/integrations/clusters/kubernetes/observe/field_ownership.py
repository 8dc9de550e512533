"""Field ownership of an object, from its `managedFields` (server-side apply). Pure.

A path is a tuple of the keys that `fieldsV1` has: `f:NAME` for a field, `k:{"name":"x"}` for an element of a list whose
elements have an identity. A list without such elements is one value. A field belongs to every manager that wrote its
present value: a manager that changes it takes it from all others, and one that removes it leaves no trace.
"""

import copy
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Json = Mapping[str, Any]
Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Owner:
    """A manager of a field; `at` is when it last wrote any field of the object, in Unix seconds."""

    manager: str
    at: float | None = None


class Ownership:
    """Field ownership of one object."""

    def __init__(self, there: Json) -> None:
        self._entries: list[Json] = [
            each for each in there.get("metadata", {}).get("managedFields", ()) if each.get("fieldsV1")
        ]

    def owners(self, path: Path) -> Iterator[Owner]:
        """Yield the owners of the field at `path`, or of a part of it."""
        for entry in self._entries:
            if _at(entry["fieldsV1"], path) is not None:
                written = entry.get("time")
                yield Owner(
                    entry.get("manager", ""), None if written is None else datetime.fromisoformat(written).timestamp()
                )

    def is_owned_by(self, managers: Iterable[str], path: Path) -> bool:
        """Return whether one of the managers owns the field at `path`."""
        wanted = set(managers)
        return any(owner.manager in wanted for owner in self.owners(path))

    def identity(self, path: Path) -> tuple[str, ...]:
        """Return the fields that identify an element of the list at `path`; empty where the list is one value."""
        for entry in self._entries:
            for key in _at(entry["fieldsV1"], path) or ():
                if key.startswith("k:"):
                    return tuple(json.loads(key.removeprefix("k:")))
        return ()


def owned(there: Json, manager: str, path: Path) -> Any:
    """Return a copy of what a manager applied at `path`: the fields that it owns, with their present values.

    None where it owns nothing there. A list or an object that is one value is returned whole.
    """
    value: Any = there
    for key in path:
        value = value.get(key.removeprefix("f:")) if isinstance(value, Mapping) else None
    for entry in there.get("metadata", {}).get("managedFields", ()):
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            fields = _at(entry.get("fieldsV1") or {}, path)
            return None if fields is None or value is None else _owned(value, fields)
    return None


def _owned(value: Any, fields: Json) -> Any:
    if not fields or set(fields) == {"."}:
        return copy.deepcopy(value)
    if isinstance(value, list):
        return [
            _owned(each, fields[key])
            for each, key in ((each, next((key for key in fields if _is_element(key, each)), None)) for each in value)
            if key is not None
        ]
    if not isinstance(value, Mapping):
        return value
    names = ((key.removeprefix("f:"), fields[key]) for key in fields if key.startswith("f:"))
    return {name: _owned(value[name], inside) for name, inside in names if name in value}


def _is_element(key: str, value: Any) -> bool:
    """Return whether a key of `fieldsV1` names this element of a list: by its identity, or by its value."""
    if key.startswith("v:"):
        return bool(json.loads(key.removeprefix("v:")) == value)
    if not key.startswith("k:") or not isinstance(value, Mapping):
        return False
    return all(value.get(name) == part for name, part in json.loads(key.removeprefix("k:")).items())


def element(identity: Iterable[str], value: Json) -> str:
    """Return the key of a list's element in a path."""
    keys = {name: value.get(name) for name in sorted(identity)}
    return f"k:{json.dumps(keys, separators=(',', ':'))}"


def shown(path: Path) -> str:
    """Return a path as people write it, such as `spec.containers[name=runtime].image`."""
    text = ""
    for key in path:
        if key.startswith("k:"):
            text += f"[{','.join(f'{name}={value}' for name, value in json.loads(key[2:]).items())}]"
        else:
            text += f".{key.removeprefix('f:')}" if text else key.removeprefix("f:")
    return text


def _at(fields: Json, path: Path) -> Json | None:
    """Return the fields below `path`; None where it is absent."""
    for key in path:
        if key not in fields:
            return None
        fields = fields[key]
    return fields
