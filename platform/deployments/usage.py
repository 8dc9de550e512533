"""Tells the registry which revisions use a model version, so that it is not deleted under a service's feet."""

from collections.abc import Iterable, Iterator

from deployments.models import InferenceService, Revision
from registry import usage


def register() -> None:
    """Make the provider known to the registry; called once, when the apps are ready."""
    usage.register(uses_of)


def uses_of(version_ids: Iterable[int]) -> Iterator[str]:
    """Yield a phrase for each service that has, or by its history could go back to, one of the versions."""
    ids = list(version_ids)
    revisions = Revision.objects.filter(model_version__in=ids).select_related("service").order_by("service", "number")
    named = set()
    for revision in revisions:
        named.add(revision.service_id)
        yield f"service {revision.service} (revision {revision.name}, {revision.role})"
    for service in InferenceService.objects.filter(model_version__in=ids).exclude(pk__in=named):
        yield f"service {service} (its service file)"
