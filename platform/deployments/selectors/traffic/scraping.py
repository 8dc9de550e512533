"""Prometheus scrape targets of running replicas, in the form of its HTTP service discovery."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from django.db.models import Q
from django.urls import reverse

from clusters.services.connection import driver_now
from common.errors import NotFound
from deployments.models import InferenceService, Revision
from deployments.views.shapes import TargetView
from integrations.clusters.base import ReplicaPhase

_SERVES = (ReplicaPhase.READY, ReplicaPhase.DRAINING)


def scrape_targets(*, only: Q, control_plane: str, every_page_there: bool = False) -> list[TargetView]:
    """Return the replicas' metrics pages by revision, of the services that meet the condition, as last observed.

    Prometheus cannot scrape Unix sockets: the pages of replicas that listen on one are listed at the control plane.

    Args:
        control_plane: its URL.
        every_page_there: list those that replicas serve on ports there too.
    """
    rows = InferenceService.objects.filter(only)
    services = {service.pk: service for service in rows.only("namespace", "name", "observed")}
    running = Revision.objects.filter(service__in=rows.values("pk"), stopped_at=None)
    revisions = running.filter(pool="").only("name", "service_id")  # a pool's replicas are listed once, as the pool's
    found = []
    for revision in revisions.order_by("service", "number"):
        service = services.get(revision.service_id)
        if service is None:
            continue  # a new replica since then
        seen = service.observed.get(revision.name, {})
        urls = seen.get("metrics_urls", ())
        is_there = every_page_there or any(not url.startswith("http://") for url in urls)
        for url in _at(control_plane, service, seen) if is_there else urls:
            parts = urlsplit(url)
            labels = {
                "__scheme__": parts.scheme,
                "__metrics_path__": parts.path,
                "namespace": service.namespace,
                "service": service.name,
                "revision": revision.name,
            }
            if is_there:
                labels["instance"] = parts.path.split("/")[-2]
            found.append(TargetView((parts.netloc,), labels))
    return found


def replica_metrics(*, service: InferenceService, replica: str, now: datetime) -> str:
    """Return the metrics page of one of the service's replicas.

    Raises:
        NotFound: it has no such replica now, or one that does not serve yet.
        Unavailable: the cluster or the replica does not answer.
    """
    driver = driver_now(service.cluster, now)
    for revision in driver.observe(service.namespace, service.name).revisions:
        for each in revision.own_replicas:
            if each.name == replica and each.metrics_url:
                return driver.metrics_page(service.namespace, each)
    raise NotFound(
        f"service {service.namespace}/{service.name} has no replica {replica[:100]!r} with metrics now", field="replica"
    )


def _at(control_plane: str, service: InferenceService, seen: Mapping[str, Any]) -> Iterator[str]:
    for replica in seen.get("replicas", ()):
        if replica["phase"] in _SERVES:
            names = [service.namespace, service.name, replica["name"]]
            yield control_plane + reverse("replica-metrics", args=names)
