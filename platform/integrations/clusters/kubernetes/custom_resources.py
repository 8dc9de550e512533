"""Custom resources of one cluster: read from watches of all namespaces, written by the API server."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from common.errors import Conflict, NotFound
from integrations.clusters.kubernetes.access import Access
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import Kind
from integrations.clusters.kubernetes.watches.cache import EVERYWHERE, Cache
from integrations.clusters.kubernetes.watches.watcher import Watcher

Json = dict[str, Any]
KINDS = {kind.kind: kind for kind in resource_types.CUSTOM}
_LONGEST_MESSAGE = 1024


class CustomResources:
    """Objects of Fairlead's own kinds on a cluster; `report` gets namespaces and names whose objects changed."""

    def __init__(self, access: Access, report: Callable[[set[tuple[str, str]]], None]) -> None:
        """Watch from now on; raises InvalidInput where the access does not say how to reach a cluster."""
        self._cache = Cache()
        self._api = Api(access)
        self._watcher = Watcher(access, self._cache, report, resource_types.CUSTOM)
        self._watcher.follow({EVERYWHERE})

    def is_known(self, kind: str) -> bool:
        """Return whether all objects of a kind are known as they are."""
        return self._cache.covers(KINDS[kind], EVERYWHERE)

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """Return an object; None where it is absent."""
        return self._cache.get(KINDS[kind], namespace, name)

    def names(self) -> set[tuple[str, str]]:
        """Return the namespaces and names of all objects."""
        every = (each["metadata"] for kind in resource_types.CUSTOM for each in self._cache.every(kind))
        return {(each["namespace"], each["name"]) for each in every}

    def create(self, kind: str, item: Json) -> None:
        """Create an object; one of its name that is there already is no error."""
        try:
            made = self._api.create({"apiVersion": KINDS[kind].api_version, "kind": kind, **item})
        except Conflict:
            return
        self._cache.written(KINDS[kind], made)

    def change(self, kind: str, namespace: str, name: str, changes: Json) -> None:
        """Change fields of an object; with a resourceVersion only if it is still that one. An absent one is no error.

        Raises:
            Conflict: the object was changed since.
        """
        self._merge(KINDS[kind], namespace, name, changes)

    def set_status(self, kind: str, namespace: str, name: str, status: Json) -> None:
        """Replace the status of an object; an absent one is no error."""
        known = self.get(kind, namespace, name)
        gone = {} if known is None else dict.fromkeys((known.get("status") or {}).keys() - status.keys())
        self._merge(KINDS[kind], namespace, name, {"status": {**gone, **status}}, "status")

    def _merge(self, kind: Kind, namespace: str, name: str, changes: Json, part: str = "") -> None:
        try:
            made = self._api.merge(kind, namespace, f"{name}/{part}" if part else name, changes)
        except NotFound:
            return
        self._cache.written(kind, made)

    def event(
        self, kind: str, item: Json, *, name: str, reason: str, message: str, is_warning: bool, at: datetime
    ) -> None:
        """Create an Event about an object; one of that name is there already where it was created before."""
        metadata, when = item["metadata"], f"{at:%Y-%m-%dT%H:%M:%SZ}"
        about = {part: metadata[part] for part in ("namespace", "name", "uid")}
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"namespace": metadata["namespace"], "name": name},
            "involvedObject": {"apiVersion": KINDS[kind].api_version, "kind": kind, **about},
            "reason": reason,
            "message": message[:_LONGEST_MESSAGE],
            "type": "Warning" if is_warning else "Normal",
            "source": {"component": "fairlead"},
            "reportingComponent": "fairlead",
            "reportingInstance": "fairlead",
            "firstTimestamp": when,
            "lastTimestamp": when,
            "count": 1,
        }
        try:
            self._api.create(event)
        except Conflict:
            return

    def problems(self) -> Sequence[str]:
        """Return why watches do not stream."""
        return self._watcher.standing().problems

    def close(self) -> None:
        """End the watches."""
        self._watcher.close()
        self._api.close()
