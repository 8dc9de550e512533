"""API client whose reads of watched objects come from a cache. Used by the driver where watches run in its process."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.errors import Conflict
from integrations.clusters.kubernetes.access import Access
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.api.errors import ManagedElsewhere
from integrations.clusters.kubernetes.api.resource_types import Kind, kind_of
from integrations.clusters.kubernetes.manifests.names import MANAGED, SERVICE
from integrations.clusters.kubernetes.observe.drift import FIELD_MANAGER
from integrations.clusters.kubernetes.watches.cache import Cache

Json = dict[str, Any]


class CachedApi(Api):
    """Reads from the cache what it covers, and puts the objects of its own writes there.

    A write by an old resourceVersion is refused; then the service's objects of that kind are read from the server.
    """

    def __init__(self, access: Access, cache: Cache) -> None:
        """Connect as `access` says; raises InvalidInput as `Api` does."""
        super().__init__(access)
        self.cache = cache

    def get(self, kind: Kind, namespace: str, name: str) -> Json | None:
        """Return an object; None where it is absent. Of watched kinds it has to be one with the driver's labels."""
        if self.cache.covers(kind, namespace):
            return self.cache.get(kind, namespace, name)
        return self.fetch(kind, namespace, name)

    def list(self, kind: Kind, namespace: str, labels: dict[str, str]) -> list[Json]:
        """Return the objects of a namespace that have all these labels, sorted by name."""
        if self.cache.covers(kind, namespace) and (SERVICE in labels or MANAGED.items() <= labels.items()):
            return self.cache.list(kind, namespace, labels)
        return super().list(kind, namespace, labels)

    def apply(self, manifest: Json, *, dry_run: bool = False, force: bool = False) -> Json:
        """Apply a manifest as `Api.apply` does."""
        metadata = manifest["metadata"]
        with self._read_again(kind_of(manifest), metadata["namespace"], metadata["name"]):
            found = super().apply(manifest, dry_run=dry_run, force=force)
        if not dry_run:
            self.cache.written(kind_of(manifest), found)
        return found

    def create(self, manifest: Json, *, dry_run: bool = False) -> Json:
        """Create an object as `Api.create` does."""
        metadata = manifest.get("metadata", {})
        with self._read_again(kind_of(manifest), metadata.get("namespace", ""), metadata.get("name", "")):
            found = super().create(manifest, dry_run=dry_run)
        if not dry_run and metadata.get("namespace"):
            self.cache.written(kind_of(manifest), found)
        return found

    def merge(self, kind: Kind, namespace: str, name: str, changes: Json) -> Json:
        """Change fields of an object as `Api.merge` does."""
        with self._read_again(kind, namespace, name):
            found = super().merge(kind, namespace, name, changes)
        self.cache.written(kind, found)
        return found

    def scale(self, kind: Kind, metadata: Json, replicas: int, *, manager: str = FIELD_MANAGER) -> None:
        """Set the number of replicas as `Api.scale` does."""
        with self._read_again(kind, metadata["namespace"], metadata["name"]):
            super().scale(kind, metadata, replicas, manager=manager)

    @contextmanager
    def _read_again(self, kind: Kind, namespace: str, name: str) -> Iterator[None]:
        """Read an object from the server where the caller's write of it was refused since it was changed."""
        try:
            yield
        except ManagedElsewhere:
            raise
        except Conflict:
            if self.cache.covers(kind, namespace):
                self._read(kind, namespace, name)
            raise

    def _read(self, kind: Kind, namespace: str, name: str) -> None:
        known = self.cache.get(kind, namespace, name)
        service = (known or {"metadata": {}})["metadata"].get("labels", {}).get(SERVICE)
        for each in self.fetch_list(kind, namespace, {SERVICE: service} if service else MANAGED):
            self.cache.written(kind, each)
