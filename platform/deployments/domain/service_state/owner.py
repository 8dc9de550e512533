"""Owner of a service: the custom resource that it follows. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Owner:
    """The custom resource that a service follows.

    Attributes:
        uid: of the object; another one of the same name has another.
        adopts: changes by API and pages are written into the object, not refused.
    """

    cluster: str
    namespace: str
    name: str
    uid: str
    adopts: bool = False

    def __str__(self) -> str:
        return f"InferenceService {self.namespace}/{self.name} on cluster {self.cluster}"

    def is_same(self, other: "Owner") -> bool:
        """Return whether both are the same object, whatever it says now."""
        return (self.cluster, self.uid) == (other.cluster, other.uid)


def owner_json(owner: Owner) -> dict[str, Any]:
    """Return an owner as a service's row keeps it."""
    return asdict(owner)


def stored_owner(stored: Mapping[str, Any] | None) -> Owner | None:
    """Return the owner from the JSON of `owner_json`; None for a service that API and pages change."""
    return None if stored is None else Owner(**stored)
