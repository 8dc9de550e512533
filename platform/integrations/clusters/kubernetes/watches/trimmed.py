"""What is kept of a watched object: the fields that the driver reads. Pure.

Controllers go on writing statuses that nothing here depends on, such as the load that an autoscaler measured. They are
left out, so that they neither take memory nor count as a change.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.resource_types import Kind
from integrations.clusters.kubernetes.manifests.names import RESTART

Json = dict[str, Any]

_WRITTEN_BY_OTHERS = (resource_types.POD, resource_types.ENDPOINT_SLICE)
"""Kinds of which no field is the driver's, so that their owners do not count."""
_STATUS = {
    resource_types.DEPLOYMENT: ("conditions", "readyReplicas"),
    resource_types.AUTOSCALER: ("conditions",),
    **dict.fromkeys(resource_types.ROUTES, ("parents",)),
    **dict.fromkeys(resource_types.POLICIES, ("ancestors",)),
}
"""Fields of the status that are read; of pods all are, of other kinds none."""
_OF_POD = ("containers", "initContainers", "nodeName")
_OF_CONTAINER = ("name", "env")
_FAILS = "ReplicaFailure"


def trimmed(kind: Kind, item: Mapping[str, Any]) -> Json:
    """Return the object's fields that the driver reads, without its resourceVersion."""
    metadata = {name: value for name, value in item["metadata"].items() if name not in ("resourceVersion", "selfLink")}
    if kind in _WRITTEN_BY_OTHERS:
        metadata.pop("managedFields", None)
    else:
        metadata["managedFields"] = list(_managed(metadata.get("managedFields") or ()))
    kept: Json = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    if kind == resource_types.POD:
        if "annotations" in metadata:
            metadata["annotations"] = {k: v for k, v in metadata["annotations"].items() if k == RESTART}
        return kept | {"spec": _of_pod(item.get("spec") or {}), "status": item.get("status") or {}}
    if kind == resource_types.ENDPOINT_SLICE:
        return kept | {"endpoints": list(map(_endpoint, item.get("endpoints") or ()))}
    if kind in resource_types.OF_USERS:
        metadata.pop("managedFields")
        return kept | {"spec": item.get("spec") or {}, "status": item.get("status") or {}}
    kept |= {name: value for name, value in item.items() if name not in (*kept, "status")}
    status = item.get("status") or {}
    read = {name: status[name] for name in _STATUS.get(kind, ()) if name in status}
    if read:
        kept["status"] = {name: _statements(kind, value) for name, value in read.items()}
    return kept


def digest(kept: Mapping[str, Any]) -> bytes:
    """Return the digest of a trimmed object; two are equal where the driver would do the same with both."""
    metadata = kept["metadata"]
    managed = [{k: v for k, v in each.items() if k != "time"} for each in metadata.get("managedFields", ())]
    counted = {**kept, "metadata": {**metadata, "managedFields": managed}}
    return hashlib.blake2b(json.dumps(counted, sort_keys=True).encode(), digest_size=16).digest()


def _managed(fields: Any) -> Iterator[Json]:
    """Yield the owners of fields, but for those of the status."""
    return (each for each in fields if each.get("subresource") != "status")


def _of_pod(spec: Mapping[str, Any]) -> Json:
    kept: Json = {name: spec[name] for name in _OF_POD if name in spec}
    for name in ("containers", "initContainers"):
        if name in kept:
            kept[name] = [{part: one[part] for part in _OF_CONTAINER if part in one} for one in kept[name] or ()]
    return kept


def _endpoint(endpoint: Mapping[str, Any]) -> Json:
    kept: Json = {"conditions": {"ready": bool((endpoint.get("conditions") or {}).get("ready"))}}
    if "targetRef" in endpoint:
        kept["targetRef"] = {"name": endpoint["targetRef"]["name"]}
    return kept


def _statements(kind: Kind, value: Any) -> Any:
    """Return a part of a status without what changes at every look."""
    if kind == resource_types.DEPLOYMENT:
        return [each for each in value if each.get("type") == _FAILS] if isinstance(value, list) else value
    if kind == resource_types.AUTOSCALER:
        return list(map(_condition, value or ()))
    return value


def _condition(condition: Mapping[str, Any]) -> Json:
    """Return an autoscaler's condition; while it holds its message has the load that was measured."""
    kept = {name: value for name, value in condition.items() if name in ("type", "status", "reason")}
    return kept if condition.get("status") == "True" else kept | {"message": condition.get("message", "")}
