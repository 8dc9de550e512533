"""Owner of a service's objects: its ConfigMap, as last read. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """A service's entry.

    Attributes:
        leaving: the service is being removed.
        deleted: the entry is, and stays until Kubernetes has removed what depends on it.
        objects: kinds and names, such as `Deployment/digits-00001`.
        pool: the pool that answers for the service, or did, with its namespace where that is another one; empty where
            it has replicas of its own.
        pooled: the revisions that it answers for, and the version of each.
        loaded: those of them that it has loaded once.
        failures: why it could not load others, and the Unix seconds of that.
    """

    name: str
    uid: str
    resource_version: str
    generation: int
    leaving: bool
    deleted: bool
    objects: frozenset[str] = frozenset()
    pool: str = ""
    pooled: Mapping[str, str] = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()
    failures: Mapping[str, tuple[str, float]] = field(default_factory=dict)

    @property
    def is_pool(self) -> bool:
        """Return whether the service is a pool, or was one: others have no Role."""
        return any(each.startswith("Role/") for each in self.objects)

    @property
    def is_shared(self) -> bool:
        """Return whether the service is a pool with a ReferenceGrant, or had one."""
        return any(each.startswith("ReferenceGrant/") for each in self.objects)

    @property
    def owner(self) -> dict[str, Any]:
        """Return the owner reference of the service's objects."""
        return {"apiVersion": "v1", "kind": "ConfigMap", "name": self.name, "uid": self.uid, "blockOwnerDeletion": True}
