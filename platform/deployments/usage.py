"""Tells the registry which revisions use a model version, so that it is not deleted under a service's feet."""

from collections.abc import Iterable, Iterator

from django.urls import reverse

from deployments.desired import Role
from deployments.models import InferenceService, Revision
from registry import usage

_SERVING = {Role.STABLE, Role.CANARY}


def register() -> None:
    """Make the provider known to the registry; called once, when the apps are ready."""
    usage.register(uses_of)


def uses_of(version_ids: Iterable[int]) -> Iterator[usage.Use]:
    """Yield a use for each service that has, or by its history could go back to, one of the versions."""
    ids = list(version_ids)
    revisions = Revision.objects.filter(model_version__in=ids).select_related("service").order_by("service", "number")
    named = set()
    for revision in revisions:
        named.add(revision.service_id)
        is_live = Role(revision.role) in _SERVING and not revision.service.stopped
        by, version_id = f"revision {revision.name}, {revision.role}", revision.model_version_id
        yield _use(revision.service, by, version_id, is_live=is_live)
    for service in InferenceService.objects.filter(model_version__in=ids).exclude(pk__in=named):
        yield _use(service, "its service file", service.model_version_id or 0, is_live=False)


def _use(service: InferenceService, by: str, version_id: int, *, is_live: bool) -> usage.Use:
    page = reverse("deployments:service-detail", args=[service.namespace, service.name])
    live_as = str(service) if is_live else ""
    return usage.Use(f"service {service} ({by})", page, service.namespace, version_id, live_as)
