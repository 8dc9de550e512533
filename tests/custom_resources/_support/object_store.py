"""Objects in memory, which change as an API server changes them: by merge, with versions, generations and finalizers.

It stands in for `CustomResources` where a test looks at every write; the real one is tested at a real API server.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from common.errors import Conflict
from integrations.clusters.kubernetes.custom_resources import KINDS

Json = dict[str, Any]
Key = tuple[str, str, str]
"""Kind, namespace and name."""


def _merged(value: Any, changes: Any) -> Any:
    """Return what a JSON merge patch makes of a value (RFC 7386)."""
    if not isinstance(changes, dict):
        return deepcopy(changes)
    result = dict(value) if isinstance(value, dict) else {}
    for name, change in changes.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), change)
    return result


@dataclass
class ObjectStore:
    """The objects of a cluster, and the Events about them.

    Attributes:
        on_write: called before each write by the control plane, with the verb and the resource.
        events: reason and message by name.
        made, written: how many objects were created, and how often one was written.
        controller: KServe's, where it runs.
    """

    items: dict[Key, Json] = field(default_factory=dict)
    events: dict[str, tuple[str, str]] = field(default_factory=dict)
    on_write: Callable[[str], None] = lambda _what: None
    made: int = 0
    written: int = 0
    controller: str = ""

    def put(self, kind: str, name: str, spec: Json, **annotations: str) -> None:
        """Create or replace an object's spec and annotations, as `kubectl apply` does."""
        key = (kind, "default", name)
        if key not in self.items:
            self._made(key, {})
        known = self.items[key]
        said = {f"fairlead.dev/{each}": value for each, value in annotations.items()}
        self._save(key, {**known, "spec": spec, "metadata": {**known["metadata"], "annotations": said}})

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, which stays until it has no finalizers."""
        key = (kind, "default", name)
        known = self.items[key]
        self._save(key, {**known, "metadata": {**known["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}})

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """Return an object; None where it is absent."""
        return deepcopy(self.items.get((kind, namespace, name)))

    def kserve_controller(self) -> str:
        """Return the Deployment of KServe's controller; empty where it does not run."""
        return self.controller

    def names(self) -> set[tuple[str, str]]:
        """Return the namespaces and names of all objects."""
        return {(namespace, name) for _, namespace, name in self.items}

    def create(self, kind: str, item: Json) -> None:
        """Create an object; one of its name that is there already is no error."""
        self.on_write(f"create {KINDS[kind].plural}")
        key = (kind, item["metadata"]["namespace"], item["metadata"]["name"])
        if key not in self.items:
            self._made(key, item)

    def change(self, kind: str, namespace: str, name: str, changes: Json) -> None:
        """Change fields of an object; with a resourceVersion only if it is still that one."""
        self.on_write(f"patch {KINDS[kind].plural}")
        known = self.items.get((kind, namespace, name))
        if known is None:
            return
        version = changes.get("metadata", {}).get("resourceVersion", known["metadata"]["resourceVersion"])
        if version != known["metadata"]["resourceVersion"]:
            raise Conflict(f"{kind} {namespace}/{name} was changed since it was read")
        self._save((kind, namespace, name), _merged(known, changes))

    def set_status(self, kind: str, namespace: str, name: str, status: Json) -> None:
        """Replace the status of an object; an absent one is no error."""
        self.on_write(f"patch {KINDS[kind].plural}/status")
        known = self.items.get((kind, namespace, name))
        if known is not None:
            self._save((kind, namespace, name), {**known, "status": deepcopy(status)})

    def event(
        self, kind: str, item: Json, *, name: str, reason: str, message: str, is_warning: bool, at: datetime
    ) -> None:
        """Create an Event about an object; one of that name is there already where it was created before."""
        self.on_write("create events")
        self.events.setdefault(name, (reason, message))

    def _made(self, key: Key, item: Json) -> None:
        _, namespace, name = key
        self.made += 1
        metadata = {"namespace": namespace, "name": name, "uid": f"uid-{self.made}", "generation": 0}
        self._save(key, {"spec": {}, **item, "metadata": {**item.get("metadata", {}), **metadata}})

    def _save(self, key: Key, item: Json) -> None:
        metadata, before = dict(item["metadata"]), self.items.get(key)
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.items.pop(key, None)
            return
        is_changed = before is None or before.get("spec") != item.get("spec")
        metadata["generation"] = metadata["generation"] + is_changed
        self.written += 1
        metadata["resourceVersion"] = str(self.written)
        self.items[key] = {**deepcopy(item), "metadata": metadata}
