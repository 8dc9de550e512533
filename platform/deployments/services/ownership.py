"""Ownership of services by custom resources: what the object says wins over changes by API and pages."""

from dataclasses import asdict, dataclass
from typing import Any

from common.errors import Conflict
from deployments.models import InferenceService


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
        return f"the object InferenceService {self.namespace}/{self.name} on cluster {self.cluster}"

    def is_same(self, other: "Owner") -> bool:
        """Return whether both are the same object, whatever it says now."""
        return (self.cluster, self.uid) == (other.cluster, other.uid)


def owner_json(owner: Owner) -> dict[str, Any]:
    """Return an owner as a service's row keeps it."""
    return asdict(owner)


def owner_of(service: InferenceService) -> Owner | None:
    """Return the object that a service follows; None for one that API and pages change."""
    return None if service.owner_object is None else Owner(**service.owner_object)


def check_owner(service: InferenceService, by: Owner | None = None) -> None:
    """Raise Conflict where a service follows an object, and it is not that one which changes it.

    Args:
        by: the object that changes it; None for API and pages.
    """
    owner = owner_of(service)
    if owner is None or (owner.adopts if by is None else owner.is_same(by)):
        return
    raise Conflict(
        f"service {service} follows {owner}, so that the object's next look would undo the change; change the object, "
        'or annotate it with fairlead.dev/changes: "adopt", which writes changes made here into it'
    )
