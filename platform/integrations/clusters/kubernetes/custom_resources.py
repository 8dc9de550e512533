"""Custom resources of one cluster: read from watches, written by the API server.

They are watched in all namespaces at once, or, where the role is bound in single ones, in those that `follow` named.
"""

import time
from collections.abc import Callable, Iterable, Sequence
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
KSERVE = "KServeInferenceService"
"""The name here of KServe's own kind, which is called as Fairlead's is."""
KINDS = {**{kind.kind: kind for kind in resource_types.CUSTOM}, KSERVE: resource_types.KSERVE_SERVICE}
OWN = tuple(kind.kind for kind in resource_types.CUSTOM)
_CONTROLLER = {"control-plane": "kserve-controller-manager"}
_LOOKS_S = 30.0
_LONGEST_MESSAGE = 1024


class CustomResources:
    """Objects of some kinds on a cluster; `report` gets namespaces and names whose objects changed."""

    def __init__(
        self, access: Access, report: Callable[[set[tuple[str, str]]], None], kinds: Sequence[str] = OWN
    ) -> None:
        """Watch from now on; raises InvalidInput where the access does not say how to reach a cluster."""
        self.kinds = tuple(kinds)
        self._kserve: tuple[float, str] = (float("-inf"), "")
        self._cache = Cache()
        self._api = Api(access)
        self._watcher = Watcher(access, self._cache, report, [KINDS[each] for each in kinds])
        self.follow(())

    def follow(self, namespaces: Iterable[str]) -> None:
        """Watch the objects of these namespaces from now on, where those of all are not permitted."""
        self._watcher.follow({EVERYWHERE, *namespaces})

    def is_known(self, kind: str, namespace: str = EVERYWHERE) -> bool:
        """Return whether all objects of a kind, by default in all namespaces, are known as they are."""
        return self._cache.covers(KINDS[kind], namespace)

    def get(self, kind: str, namespace: str, name: str) -> Json | None:
        """Return an object; None where it is absent."""
        return self._cache.get(KINDS[kind], namespace, name)

    def names(self) -> set[tuple[str, str]]:
        """Return the namespaces and names of all objects."""
        every = (each["metadata"] for kind in self.kinds for each in self._cache.every(KINDS[kind]))
        return {(each["namespace"], each["name"]) for each in every}

    def create(self, kind: str, item: Json) -> None:
        """Create an object; one of its name that is there already is no error."""
        try:
            made = self._api.create({"apiVersion": KINDS[kind].api_version, "kind": KINDS[kind].kind, **item})
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
            "involvedObject": {"apiVersion": KINDS[kind].api_version, "kind": KINDS[kind].kind, **about},
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

    def kserve_controller(self) -> str:
        """Return the Deployment of KServe's own controller; empty without one, or where it is scaled to 0.

        One that is away for a moment counts: it comes back, and would then find its objects in other hands. It is
        looked for every 30 s.

        Raises:
            NotPermitted: the role does not allow to look.
            Unavailable: the cluster cannot be reached.
        """
        looked_at, found = self._kserve
        if time.monotonic() - looked_at >= _LOOKS_S:
            deployments = self._api.list(resource_types.DEPLOYMENT, EVERYWHERE, _CONTROLLER)
            running = (each["metadata"] for each in deployments if (each.get("spec") or {}).get("replicas", 1))
            found = next((f"{each['namespace']}/{each['name']}" for each in running), "")
            self._kserve = (time.monotonic(), found)
        return found

    def problems(self) -> Sequence[str]:
        """Return why watches do not stream."""
        return self._watcher.standing().problems

    def close(self) -> None:
        """End the watches."""
        self._watcher.close()
        self._api.close()
