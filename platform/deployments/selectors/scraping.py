"""Where a Prometheus finds the metrics of the replicas that run, as its HTTP service discovery wants to be told."""

from urllib.parse import urlsplit

from django.db.models import Q

from deployments.models import InferenceService, Revision
from deployments.shapes import TargetView


def scrape_targets(*, only: Q) -> list[TargetView]:
    """Return the replicas' metrics pages by revision, of the services that fit the condition, as last seen."""
    rows = InferenceService.objects.filter(only)
    services = {service.pk: service for service in rows.only("namespace", "name", "observed")}
    revisions = Revision.objects.filter(service__in=rows.values("pk"), stopped_at=None).only("name", "service_id")
    found = []
    for revision in revisions.order_by("service", "number"):
        service = services.get(revision.service_id)
        if service is None:
            continue  # it came meanwhile
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
