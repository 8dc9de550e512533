"""Objects of an API server that is stood in for, with what its controllers would make of them. Pure.

It knows as much of Kubernetes as the driver relies on: resource versions, generations, server-side apply with one
manager, labels, watches, Deployments whose pods are ready after a while, and routes that their gateway accepts.
"""

import copy
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from integrations.clusters.kubernetes.manifests.names import SERVICE

Json = dict[str, Any]

MANAGER = "fairlead"
GATEWAY = ("gateways", "models")
"""Namespace and name of the Gateway that accepts all routes."""
STARTS_S = 2.0
"""Time from a Deployment's number of replicas to its ready pods."""
_KEPT = 100_000
_ROUTES = ("httproutes", "grpcroutes")
_POLICIES = ("securitypolicies", "backendtrafficpolicies")


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object is; `name` is empty for all of a kind, `namespace` for those of every namespace."""

    plural: str
    namespace: str
    name: str = ""


@dataclass
class Objects:
    """All objects of one cluster.

    Attributes:
        version: of the newest change.
        events: changes, oldest first: resource version, type, kind of path and object.
        starting: Deployments whose pods follow, with when.
        services: the objects of each service, by kind and service.
    """

    version: int = 0
    there: dict[str, dict[tuple[str, str], Json]] = field(default_factory=lambda: defaultdict(dict))
    events: list[tuple[int, str, str, Json]] = field(default_factory=list)
    starting: dict[tuple[str, str], float] = field(default_factory=dict)
    services: dict[tuple[str, str], dict[tuple[str, str], Json]] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        accepted = [{"type": each, "status": "True"} for each in ("Accepted", "Programmed")]
        gateway = {
            "apiVersion": "gateway.networking.k8s.io/v1",
            "kind": "Gateway",
            "metadata": {"namespace": GATEWAY[0], "name": GATEWAY[1]},
            "spec": {"gatewayClassName": "stand-in", "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]},
            "status": {"conditions": accepted},
        }
        self._put("gateways", gateway)
        kind = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "GatewayClass", "metadata": {"name": "stand-in"}}
        controller = "gateway.envoyproxy.io/gatewayclass-controller"
        self._put("gatewayclasses", {**kind, "spec": {"controllerName": controller}, "status": {}})

    def get(self, place: Place) -> Json | None:
        """Return an object; None where it is absent."""
        return self.there[place.plural].get((place.namespace, place.name))

    def list(self, place: Place, labels: Mapping[str, str]) -> list[Json]:
        """Return the objects of a kind with these labels."""
        service = labels.get(SERVICE)
        found = self.there[place.plural] if service is None else self.services[place.plural, service]
        return [
            each for (namespace, _), each in found.items() if place.namespace in ("", namespace) and _has(each, labels)
        ]

    def apply(self, place: Place, manifest: Json, now: float) -> Json:
        """Return the object after a server-side apply; raises ChangedError where it has another version."""
        known = self.get(place)
        asked = manifest["metadata"].get("resourceVersion")
        if known is not None and asked not in (None, known["metadata"]["resourceVersion"]):
            raise ChangedError
        made = copy.deepcopy(manifest)
        made["metadata"].pop("resourceVersion", None)
        managed = {"manager": MANAGER, "operation": "Apply", "fieldsV1": _fields(manifest)}
        made["metadata"]["managedFields"] = [managed]
        if place.plural == "deployments":
            replicas = 1 if known is None else known["spec"]["replicas"]
            made["spec"].setdefault("replicas", replicas)
        if known is not None:
            made["status"] = known.get("status", {})
            scaled = [each for each in known["metadata"]["managedFields"] if each.get("subresource") == "scale"]
            made["metadata"]["managedFields"] += scaled
        return self._stored(place, made, now)

    def create(self, place: Place, manifest: Json, now: float) -> Json:
        """Return a new object; raises ChangedError where there is one."""
        if self.get(Place(place.plural, place.namespace, manifest["metadata"]["name"])) is not None:
            raise ChangedError
        return self._stored(place, copy.deepcopy(manifest), now)

    def merge(self, place: Place, changes: Json, now: float) -> Json:
        """Return the object after a merge patch; raises KeyError where it is absent, ChangedError as `apply`."""
        known = self.there[place.plural][place.namespace, place.name]
        asked = changes.get("metadata", {}).get("resourceVersion")
        if asked not in (None, known["metadata"]["resourceVersion"]):
            raise ChangedError
        return self._stored(place, _merged(known, changes), now)

    def scale(self, place: Place, replicas: int, now: float) -> Json:
        """Return a Deployment with another number of replicas."""
        known = copy.deepcopy(self.there[place.plural][place.namespace, place.name])
        known["spec"]["replicas"] = replicas
        fields = {"f:spec": {"f:replicas": {}}}
        scaled = {"manager": MANAGER, "operation": "Apply", "subresource": "scale", "fieldsV1": fields}
        others = [each for each in known["metadata"]["managedFields"] if "subresource" not in each]
        known["metadata"]["managedFields"] = [*others, scaled]
        return self._stored(place, known, now)

    def delete(self, place: Place, now: float) -> None:
        """Remove an object, and what it owns."""
        gone = self.there[place.plural].pop((place.namespace, place.name), None)
        if gone is None:
            return
        self._of_service(place.plural, gone).pop((place.namespace, place.name), None)
        self.version += 1
        self._note("DELETED", place.plural, gone)
        for plural in list(self.there):
            for (namespace, name), each in list(self.there[plural].items()):
                owners = each["metadata"].get("ownerReferences", ())
                if any(owner["uid"] == gone["metadata"]["uid"] for owner in owners):
                    self.delete(Place(plural, namespace, name), now)

    def settle(self, now: float) -> None:
        """Start and end the pods that are due."""
        due = [key for key, at in self.starting.items() if at <= now]
        for key in due:
            del self.starting[key]
            found = self.there["deployments"].get(key)
            if found is not None:
                self._replicate(found, now)

    def of_service(self, name: str) -> "list[tuple[str, str]]":
        """Return the objects of a service as kind and JSON."""
        found = [(plural, each) for (plural, service), each in self.services.items() if service == name]
        return [(plural, json.dumps(each)) for plural, objects in found for each in objects.values()]

    def put_copy(self, plural: str, made: Json) -> None:
        """Store an object as it was copied."""
        self._put(plural, made)

    def touch_autoscalers(self, now: float) -> None:
        """Write the status of every autoscaler, as its controller does every 15 s."""
        for each in list(self.there["horizontalpodautoscalers"].values()):
            conditions = [{"type": name, "status": "True"} for name in ("ScalingActive", "AbleToScale")]
            spec = each["spec"]
            status = {"conditions": conditions, "currentReplicas": spec.get("minReplicas", 1), "looked": now}
            self._put("horizontalpodautoscalers", {**each, "status": {**status, "desiredReplicas": 1}})

    def changes(self, plural: str, since: int, namespace: str, labels: Mapping[str, str]) -> Iterator[tuple[str, Json]]:
        """Yield what happened to objects of a kind after a resource version."""
        first = len(self.events)
        while first and self.events[first - 1][0] > since:
            first -= 1
        for _, kind, of, each in self.events[first:]:
            if of == plural and namespace in ("", each["metadata"].get("namespace", "")) and _has(each, labels):
                yield kind, each

    def _stored(self, place: Place, made: Json, now: float) -> Json:
        stored = self._put(place.plural, made)
        if place.plural == "deployments":
            key = (stored["metadata"]["namespace"], stored["metadata"]["name"])
            status = stored.get("status", {})
            if status.get("replicas", 0) != stored["spec"]["replicas"]:
                self.starting.setdefault(key, now + STARTS_S)
        if place.plural in (*_ROUTES, *_POLICIES):
            return self._accepted(place.plural, stored)
        return stored

    def _put(self, plural: str, made: Json) -> Json:
        metadata = made["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        known = self.there[plural].get(key)
        self.version += 1
        metadata = {**metadata, "resourceVersion": str(self.version), "uid": f"{plural}-{key[0]}-{key[1]}"}
        metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
        generation = 1 if known is None else known["metadata"]["generation"]
        changed = known is not None and known.get("spec") != made.get("spec")
        metadata["generation"] = generation + changed
        stored = {**made, "metadata": metadata}
        self.there[plural][key] = stored
        self._of_service(plural, stored)[key] = stored
        self._note("ADDED" if known is None else "MODIFIED", plural, stored)
        return stored

    def _note(self, kind: str, plural: str, each: Json) -> None:
        self.events.append((self.version, kind, plural, each))
        if len(self.events) > 2 * _KEPT:
            del self.events[:_KEPT]

    def _of_service(self, plural: str, each: Json) -> dict[tuple[str, str], Json]:
        return self.services[plural, each["metadata"].get("labels", {}).get(SERVICE, "")]

    def _accepted(self, plural: str, route: Json) -> Json:
        holds = {"status": "True", "observedGeneration": route["metadata"]["generation"]}
        conditions = [{"type": each, **holds} for each in ("Accepted", "ResolvedRefs")]
        reference = {"namespace": GATEWAY[0], "name": GATEWAY[1]}
        parent = {"parentRef": reference, "controllerName": "stand-in", "conditions": conditions}
        ancestor = {"ancestorRef": reference, "controllerName": "stand-in", "conditions": conditions}
        return self._put(plural, {**route, "status": {"parents": [parent], "ancestors": [ancestor]}})

    def _replicate(self, deployment: Json, now: float) -> None:
        """Make the pods of a Deployment as many as asked, ready and behind its slice."""
        metadata, namespace = deployment["metadata"], deployment["metadata"]["namespace"]
        template, replicas = deployment["spec"]["template"]["metadata"], deployment["spec"]["replicas"]
        labels = template["labels"]
        names = [f"{metadata['name']}-{number}" for number in range(replicas)]
        owner = {"kind": "Deployment", "name": metadata["name"], "uid": metadata["uid"], "controller": True}
        own = {"namespace": namespace, "labels": labels, "ownerReferences": [owner]}
        for pod in self.list(Place("pods", namespace), labels):
            if pod["metadata"]["name"] not in names:
                self.delete(Place("pods", namespace, pod["metadata"]["name"]), now)
        for name in names:
            if (namespace, name) not in self.there["pods"]:
                self._put("pods", _pod({**own, "name": name, "annotations": template.get("annotations", {})}))
        endpoints = [{"conditions": {"ready": True}, "targetRef": {"kind": "Pod", "name": each}} for each in names]
        piece = {"metadata": {**own, "name": f"{metadata['name']}-slice"}, "endpoints": endpoints, "ports": []}
        self._put("endpointslices", piece)
        counts = dict.fromkeys(("replicas", "readyReplicas", "availableReplicas", "updatedReplicas"), replicas)
        status = {**counts, "observedGeneration": metadata["generation"], "conditions": []}
        self._put("deployments", {**deployment, "status": status})


class ChangedError(Exception):
    """The object is there already, or has been changed since it was read."""


def _pod(metadata: Json) -> Json:
    running = {"running": {"startedAt": "2026-01-01T00:00:00Z"}}
    status = {"name": "runtime", "ready": True, "restartCount": 0, "state": running}
    conditions = [{"type": "Ready", "status": "True"}]
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": "runtime", "image": "runtime"}], "nodeName": "node"},
        "status": {"phase": "Running", "podIP": "127.0.0.1", "conditions": conditions, "containerStatuses": [status]},
    }


def _has(there: Json, labels: Mapping[str, str]) -> bool:
    own = there["metadata"].get("labels", {})
    return all(own.get(name) == value for name, value in labels.items())


def _fields(value: object) -> Json:
    """Return the fields of a manifest as `managedFields` names them; a list is one value."""
    if not isinstance(value, dict):
        return {}
    return {f"f:{name}": _fields(each) for name, each in value.items()}


def _merged(known: Any, changes: Any) -> Any:
    if not isinstance(changes, dict) or not isinstance(known, dict):
        return changes
    after = {name: each for name, each in known.items() if changes.get(name, each) is not None}
    return after | {name: _merged(known.get(name), each) for name, each in changes.items() if each is not None}
