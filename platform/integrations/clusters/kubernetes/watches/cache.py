"""Objects of one cluster as its watches report them, by kind and service. For several threads at once.

    lists and events of watches ----.
                                     v
    own writes, as the server answers --> the newest version of each object --> reads of the driver

Versions of an object are compared as numbers, as the API server counts them (KEP-5504): an event about a write of our
own that is older than what is known changes nothing. Each service has a mark, which changes with what the driver would
do: two reads with the same mark are the same.

A list whose version is lower than what is known is of a cluster that was restored from a backup: nothing of before is
kept then.
"""

import json
import sys
import threading
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from integrations.clusters.kubernetes.api.resource_types import OF_USERS, Kind
from integrations.clusters.kubernetes.manifests.names import MANAGED, SERVICE
from integrations.clusters.kubernetes.watches.coalesce import Service
from integrations.clusters.kubernetes.watches.trimmed import digest, trimmed

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name of an object."""
_FAST = 1
EVERYWHERE = ""
"""As a namespace: all of them."""


@dataclass(frozen=True, slots=True)
class Known:
    """An object as it is kept: its service, version, digest and compressed text.

    A custom resource is of the service that has its name.
    """

    service: str
    version: int
    digest: bytes
    content: bytes

    @classmethod
    def of(cls, kind: Kind, item: Mapping[str, Any]) -> "Known":
        """Return what is kept of an object."""
        kept = trimmed(kind, item)
        metadata = item["metadata"]
        named = metadata["name"] if kind in OF_USERS else (metadata.get("labels") or {}).get(SERVICE, "")
        service = sys.intern(str(named))
        content = zlib.compress(json.dumps(kept, separators=(",", ":")).encode(), _FAST)
        return cls(service, _number(metadata), digest(kept), content)

    def read(self) -> Json:
        """Return the object's fields that are kept."""
        found: Json = json.loads(zlib.decompress(self.content))
        found["metadata"]["resourceVersion"] = str(self.version)
        return found


class Cache:
    """All watched objects of one cluster that have the labels of the driver."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Kind, dict[Key, Known]] = defaultdict(dict)
        self._names: dict[tuple[Kind, str, str], set[str]] = defaultdict(set)
        self._marks: dict[Service, int] = {}
        self._last_mark = 0
        self._synced: dict[tuple[Kind, str], int] = {}
        self._reported: dict[tuple[Kind, str], int] = {}
        self._kinds: set[Kind] = set()
        self._namespaces: frozenset[str] = frozenset()

    @property
    def namespaces(self) -> frozenset[str]:
        """Return the namespaces whose objects are kept."""
        return self._namespaces

    def keep(self, namespaces: Iterable[str]) -> None:
        """Keep the objects of these namespaces from now on, and forget those of others; EVERYWHERE is all."""
        with self._lock:
            before, self._namespaces = self._namespaces, frozenset(namespaces)
            if self._namespaces - before and EVERYWHERE not in before:  # watches of all have skipped what is there
                self._synced = {key: at for key, at in self._synced.items() if key[1] != EVERYWHERE}
            for kind, objects in self._objects.items():
                for namespace, name in [key for key in objects if not self._keeps(key[0])]:
                    self._drop(kind, namespace, name)
            self._marks = {each: mark for each, mark in self._marks.items() if self._keeps(each[0])}

    def covers(self, kind: Kind, namespace: str) -> bool:
        """Return whether the objects of a kind in a namespace are known as they are."""
        synced = (kind, namespace) in self._synced or (kind, EVERYWHERE) in self._synced
        return synced and self._keeps(namespace)

    def _keeps(self, namespace: str) -> bool:
        return EVERYWHERE in self._namespaces or namespace in self._namespaces

    def mark(self, namespace: str, service: str, kinds: Collection[Kind]) -> tuple[int, int] | None:
        """Return the mark of a service, with that of its namespace; None where one of the kinds is not covered."""
        if not all(self.covers(kind, namespace) for kind in kinds):
            return None
        with self._lock:
            return self._marks.get((namespace, service), 0), self._marks.get((namespace, ""), 0)

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object; None where it is absent."""
        with self._lock:
            known = self._objects[kind].get((namespace, name))
        return None if known is None else known.read()

    def every(self, kind: Kind) -> list[Json]:
        """Return all objects of a kind, sorted by namespace and name."""
        with self._lock:
            found = [self._objects[kind][key] for key in sorted(self._objects[kind])]
        return [each.read() for each in found]

    def list(self, kind: Kind, namespace: str, labels: Mapping[str, str]) -> list[Json]:
        """Return the objects that have all these labels, sorted by name."""
        with self._lock:
            objects = self._objects[kind]
            if SERVICE in labels:
                names = self._names.get((kind, namespace, labels[SERVICE]), set())
                found = [objects[namespace, name] for name in sorted(names)]
            else:
                found = [objects[key] for key in sorted(objects) if key[0] == namespace]
        read = [each.read() for each in found]
        return [each for each in read if _has(each, labels)]

    def list_begins(self, kind: Kind) -> None:
        """Take writes of our own to objects of a kind from now on: the list that begins may be older than they are."""
        with self._lock:
            self._kinds.add(kind)

    def listed(self, kind: Kind, namespace: str, found: Mapping[Key, Known], version: str) -> set[Service]:
        """Take a complete list of a kind at `version`; return the services whose objects differ from before."""
        at, changed = _as_number(version), set[Service]()
        with self._lock:
            before = self._objects[kind]
            is_restored = at < self._reported.get((kind, namespace), 0)
            for key in [each for each in before if namespace in (EVERYWHERE, each[0])]:
                # What is newer than the list was written since.
                if is_restored or (key not in found and before[key].version <= at):
                    changed |= self._drop(kind, *key)
            for key, known in found.items():
                if self._keeps(key[0]):
                    changed |= self._put(kind, key, known)
            self._synced[kind, namespace] = self._reported[kind, namespace] = at
        return changed

    def heard(self, kind: Kind, namespace: str, event: str, item: Mapping[str, Any]) -> set[Service]:
        """Take an event of a watch; return the services whose objects differ from before."""
        version = _number(item["metadata"])
        key = key_of(item)
        known = None if event in ("DELETED", "BOOKMARK") else Known.of(kind, item)
        with self._lock:
            self._reported[kind, namespace] = version
            if (kind, namespace) in self._synced:
                self._synced[kind, namespace] = version
            if not self._keeps(key[0]):
                return set()
            if known is not None:
                return self._put(kind, key, known)
            before = self._objects[kind].get(key)
            is_gone = event == "DELETED" and before is not None and before.version <= version
            return self._drop(kind, *key) if is_gone else set()  # one of the same name may have been created since

    def written(self, kind: Kind, item: Mapping[str, Any]) -> None:
        """Take an object as the API server answered a write of our own."""
        key = key_of(item)
        labels = item["metadata"].get("labels") or {}
        is_watched = kind in OF_USERS or _has({"metadata": {"labels": labels}}, MANAGED)
        if kind not in self._kinds or not is_watched:
            return
        known = Known.of(kind, item)
        with self._lock:
            if not self._keeps(key[0]):
                return
            at = max(self._synced.get((kind, key[0]), 0), self._synced.get((kind, EVERYWHERE), 0))
            if known.version > at:  # else its watch has reported it already, and perhaps that it is gone again
                self._put(kind, key, known)

    def lost(self, kind: Kind, namespace: str) -> None:
        """Note that the watch of a kind has been away for too long: what is known may be old."""
        with self._lock:
            self._synced.pop((kind, namespace), None)

    def _put(self, kind: Kind, key: Key, known: Known) -> set[Service]:
        before = self._objects[kind].get(key)
        if before is not None and before.version > known.version:
            return set()
        self._objects[kind][key] = known
        namespace, name = key
        if before is not None and before.service != known.service:
            self._forget_name(kind, namespace, name, before.service)
        self._names[kind, namespace, known.service].add(name)
        if before is not None and before.digest == known.digest:
            return set()
        return self._changed(namespace, known.service, "" if before is None else before.service)

    def _drop(self, kind: Kind, namespace: str, name: str) -> set[Service]:
        before = self._objects[kind].pop((namespace, name), None)
        if before is None:
            return set()
        self._forget_name(kind, namespace, name, before.service)
        return self._changed(namespace, before.service)

    def _forget_name(self, kind: Kind, namespace: str, name: str, service: str) -> None:
        names = self._names[kind, namespace, service]
        names.discard(name)
        if not names:
            del self._names[kind, namespace, service]

    def _changed(self, namespace: str, *services: str) -> set[Service]:
        self._last_mark += 1
        for service in services:
            self._marks[namespace, service] = self._last_mark
        return {(namespace, service) for service in services if service}


def key_of(item: Mapping[str, Any]) -> Key:
    """Return the namespace and name of an object."""
    metadata = item["metadata"]
    return str(metadata.get("namespace", "")), str(metadata.get("name", ""))


def _number(metadata: Mapping[str, Any]) -> int:
    return _as_number(str(metadata.get("resourceVersion", "")))


def _as_number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def _has(item: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    own = item["metadata"].get("labels") or {}
    return all(own.get(name) == value for name, value in labels.items())
