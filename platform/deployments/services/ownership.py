"""Ownership of services by custom resources: what the object says wins over changes by API and pages."""

from common.errors import Conflict
from deployments.domain.service_state.owner import Owner, stored_owner
from deployments.models import InferenceService


def check_owner(service: InferenceService, by: Owner | None = None) -> None:
    """Raise Conflict where a service follows an object, and it is not that one which changes it.

    Args:
        by: the object that changes it; None for API and pages.
    """
    owner = stored_owner(service.owner_object)
    if owner is None or (owner.adopts if by is None else owner.is_same(by)):
        return
    raise Conflict(
        f"service {service} follows the object {owner}, which would undo the change; change the object, or annotate it "
        'with fairlead.dev/changes: "adopt", which writes changes made here into it'
    )
