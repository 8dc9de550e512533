"""Where a Prometheus finds the metrics of the replicas that run, as its HTTP service discovery wants to be told."""

from urllib.parse import urlsplit

from django.db.models import Q

from deployments.models import InferenceService
from deployments.selectors.revisions import revision_rows
from deployments.shapes import TargetView


def scrape_targets(*, only: Q) -> list[TargetView]:
    """Return the replicas' metrics pages by revision, of the services that fit the condition, as last seen."""
    services = {service.pk: service for service in InferenceService.objects.filter(only).order_by("namespace", "name")}
    found = []
    for revision in revision_rows().filter(service__in=services, stopped_at=None):
        service = services[revision.service_id]
        for url in service.observed.get(revision.name, {}).get("metrics_urls", ()):
            parts = urlsplit(url)
            labels = {
                "__scheme__": parts.scheme,
                "__metrics_path__": parts.path,
                "namespace": service.namespace,
                "service": service.name,
                "revision": revision.name,
            }
            found.append(TargetView((parts.netloc,), labels))
    return found
