"""Model uses: reports to the registry which revisions use a version, so that it is not deleted.

Ended revisions, which failed or were retired, are history: they are shown as uses, and are deleted with their version.
"""

from collections.abc import Iterable, Iterator

from django.urls import reverse

from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from registry import hooks

_SERVING = {Role.STABLE, Role.CANARY}
_ENDED = {Role.RETIRED, Role.FAILED}


def uses_of(version_ids: Iterable[int]) -> Iterator[hooks.Use]:
    """Yield a use for each service that has one of the versions, or could roll back to it."""
    ids = list(version_ids)
    revisions = Revision.objects.filter(model_version__in=ids).select_related("service").order_by("service", "number")
    named = set()
    for revision in revisions:
        is_history = revision.role in _ENDED and revision.stopped_at is not None
        if not is_history:
            named.add(revision.service_id)
        is_live = Role(revision.role) in _SERVING and not revision.service.stopped
        by, version_id = f"revision {revision.name}, {revision.role}", revision.model_version_id
        yield _use(revision.service, by, version_id, is_live=is_live, is_history=is_history)
    for service in InferenceService.objects.filter(model_version__in=ids).exclude(pk__in=named):
        yield _use(service, "its service file", service.model_version_id or 0, is_live=False)


def _use(service: InferenceService, by: str, version_id: int, *, is_live: bool, is_history: bool = False) -> hooks.Use:
    page = reverse("deployments:service-detail", args=[service.namespace, service.name])
    live_as = str(service) if is_live else ""
    return hooks.Use(f"service {service} ({by})", page, service.namespace, version_id, live_as, is_history)
