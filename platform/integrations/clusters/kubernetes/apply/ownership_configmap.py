"""ConfigMap of a service on the cluster: it has the highest generation taken up, and the names of created objects.

It is changed by its resourceVersion only, so that of two workers one wins. By the names a missing object is known to
have been deleted by hand. It is deleted last: until all else of the service is gone it refuses older desired state.
Nothing depends on it by an owner reference: where somebody deletes it, the next turn creates it again.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from common.errors import Conflict, Unavailable
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import CONFIG_MAP
from integrations.clusters.kubernetes.manifests.names import GENERATION, LEAVING, ledger_name, service_labels, tap_name
from integrations.clusters.kubernetes.manifests.owner import Entry

_TRIES = 5
_OBJECTS, _POOLED, _LOADED, _FAILURES = "objects", "pooled", "loaded", "loadFailures"
POOL = "pool"
"""Key of the entry with the pool that answers for the service."""


def read(api: Api, namespace: str, service: str) -> Entry | None:
    """Return the entry; None where the cluster has nothing of the service."""
    found = api.get(CONFIG_MAP, namespace, ledger_name(service))
    return None if found is None else _entry(found)


def take(api: Api, namespace: str, service: str, generation: int) -> Entry | None:
    """Return the entry once it has `generation`; None where it has a higher one already.

    Raises:
        Unavailable: the service is still being removed, or others keep changing the entry.
    """
    for _ in range(_TRIES):
        try:
            found = read(api, namespace, service)
            if found is None:
                return _create(api, namespace, service, generation)
            if found.generation > generation or (found.leaving and found.generation == generation):
                return None
            if found.deleted:
                raise Unavailable(
                    f"service {namespace}/{service} is still being removed; it is created again after that"
                )
            return found if found.generation == generation else _mark(api, namespace, found, generation)
        except Conflict:
            continue
    raise Unavailable(f"service {namespace}/{service} is being changed by others; it is tried again")


def note(api: Api, namespace: str, entry: Entry, objects: Iterable[str]) -> None:
    """Record which objects were created; a worker that changed the entry meanwhile records its own."""
    made = frozenset(objects)
    if made == entry.objects:
        return
    changes = {"metadata": {"resourceVersion": entry.resource_version}, "data": {_OBJECTS: "\n".join(sorted(made))}}
    with suppress(Conflict):
        api.merge(CONFIG_MAP, namespace, entry.name, changes)


def write_pool(api: Api, namespace: str, entry: Entry, wanted: Entry) -> Entry:
    """Return the entry once it says of the pool what `wanted` does; raises Conflict where others changed it."""
    if wanted == entry:
        return entry
    data = {
        POOL: wanted.pool,
        _POOLED: json.dumps(dict(wanted.pooled), sort_keys=True),
        _LOADED: "\n".join(sorted(wanted.loaded)),
        _FAILURES: json.dumps(dict(wanted.failures), sort_keys=True),
    }
    changes = {"metadata": {"resourceVersion": entry.resource_version}, "data": data}
    return _entry(api.merge(CONFIG_MAP, namespace, entry.name, changes))


def forget_pool(api: Api, namespace: str, entry: Entry) -> Entry:
    """Return the entry of a service that has left its pool; one that others changed meanwhile forgets it later."""
    with suppress(Conflict):
        return write_pool(api, namespace, entry, replace(entry, pool="", pooled={}, loaded=frozenset(), failures={}))
    return entry


def close(api: Api, namespace: str, service: str, generation: int) -> Entry | None:
    """Mark the entry as leaving, and refuse older desired state from now on.

    Returns None where nothing is left, or a higher generation was taken up.
    """
    for _ in range(_TRIES):
        found = read(api, namespace, service)
        if found is None or found.generation > generation:
            return None
        try:
            is_closed = found.leaving and found.generation == generation
            return found if is_closed else _mark(api, namespace, found, generation, leaving=True)
        except Conflict:
            continue
    raise Unavailable(f"service {namespace}/{service} is being changed by others; it is tried again")


def remove(api: Api, namespace: str, service: str, closed: Entry) -> None:
    """Delete the entry, with the ConfigMap of the service's taps."""
    tap = api.get(CONFIG_MAP, namespace, tap_name(service))
    if tap is not None:
        api.delete(CONFIG_MAP, namespace, tap["metadata"]["name"], uid=tap["metadata"]["uid"])
    if not closed.deleted:
        api.delete(CONFIG_MAP, namespace, closed.name, uid=closed.uid)


def _create(api: Api, namespace: str, service: str, generation: int) -> Entry:
    metadata = {
        "name": ledger_name(service),
        "namespace": namespace,
        "labels": service_labels(service),
        "annotations": {GENERATION: str(generation)},
    }
    return _entry(api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))


def _mark(api: Api, namespace: str, found: Entry, generation: int, *, leaving: bool = False) -> Entry:
    annotations = {GENERATION: str(generation), LEAVING: "true" if leaving else None}
    metadata = {"resourceVersion": found.resource_version, "annotations": annotations}
    return _entry(api.merge(CONFIG_MAP, namespace, found.name, {"metadata": metadata}))


def _entry(found: dict[str, Any]) -> Entry:
    metadata = found["metadata"]
    annotations, data = metadata.get("annotations", {}), found.get("data", {})
    is_deleted = "deletionTimestamp" in metadata
    return Entry(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=int(annotations.get(GENERATION, "0")),
        leaving=is_deleted or LEAVING in annotations,
        deleted=is_deleted,
        objects=frozenset(data.get(_OBJECTS, "").split()),
        pool=data.get(POOL, ""),
        pooled={str(name): str(version) for name, version in json.loads(data.get(_POOLED, "{}")).items()},
        loaded=frozenset(data.get(_LOADED, "").split()),
        failures={name: (str(why), float(at)) for name, (why, at) in json.loads(data.get(_FAILURES, "{}")).items()},
    )
