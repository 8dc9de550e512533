"""Ownership ConfigMap of a service: it owns all other objects and keeps the highest generation taken up.

It is changed by its resourceVersion only, so that of two workers one wins. It also names the created objects, so that a
missing one is known to have been deleted by hand. A service is deleted by deleting it in the foreground: it stays, and
refuses older desired state, until Kubernetes' garbage collector has removed all that it owns.
"""

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from common.errors import Conflict, Unavailable
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.resource_types import CONFIG_MAP
from integrations.clusters.kubernetes.manifests.names import GENERATION, ledger_name, service_labels
from integrations.clusters.kubernetes.manifests.owner import Entry

_TRIES = 5
_OBJECTS = "objects"


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
            if found.leaving:
                raise Unavailable(
                    f"service {namespace}/{service} is still being removed; it is created again after that"
                )
            return found if found.generation == generation else _raise(api, namespace, found, generation)
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


def close(api: Api, namespace: str, service: str, generation: int) -> Entry | None:
    """Refuse older desired state from now on; None where nothing is left, or a higher generation was taken up."""
    for _ in range(_TRIES):
        found = read(api, namespace, service)
        if found is None or found.generation > generation:
            return None
        try:
            return found if found.generation == generation else _raise(api, namespace, found, generation)
        except Conflict:
            continue
    raise Unavailable(f"service {namespace}/{service} is being changed by others; it is tried again")


def remove(api: Api, namespace: str, closed: Entry) -> None:
    """Delete the entry with all that it owns; it stays until the last object is gone."""
    if not closed.leaving:
        api.delete(CONFIG_MAP, namespace, closed.name, uid=closed.uid, propagation="Foreground")


def _create(api: Api, namespace: str, service: str, generation: int) -> Entry:
    metadata = {
        "name": ledger_name(service),
        "namespace": namespace,
        "labels": service_labels(service),
        "annotations": {GENERATION: str(generation)},
    }
    return _entry(api.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))


def _raise(api: Api, namespace: str, found: Entry, generation: int) -> Entry:
    metadata = {"resourceVersion": found.resource_version, "annotations": {GENERATION: str(generation)}}
    return _entry(api.merge(CONFIG_MAP, namespace, found.name, {"metadata": metadata}))


def _entry(found: dict[str, Any]) -> Entry:
    metadata = found["metadata"]
    return Entry(
        name=metadata["name"],
        uid=metadata["uid"],
        resource_version=metadata["resourceVersion"],
        generation=int(metadata.get("annotations", {}).get(GENERATION, "0")),
        leaving="deletionTimestamp" in metadata,
        objects=frozenset(found.get("data", {}).get(_OBJECTS, "").split()),
    )
