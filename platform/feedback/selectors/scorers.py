"""Scorers of a service, and the output that one reads."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from common.errors import NotFound
from deployments.models import InferenceService
from feedback.models import Kept, ServiceScorer


def scorer_query(*, service: InferenceService) -> QuerySet[ServiceScorer]:
    """Return the scorers of the service."""
    return ServiceScorer.objects.filter(service=service).select_related("service")


def scorer_get(*, namespace: str, name: str, scorer: str) -> ServiceScorer:
    """Return a scorer; raises NotFound."""
    found = (
        ServiceScorer.objects.select_related("service")
        .filter(service__namespace=namespace, service__name=name, name=scorer)
        .first()
    )
    if found is None:
        raise NotFound(f"service {namespace}/{name} has no scorer {scorer}")
    return found


def output_of(kept: Kept, options: Mapping[str, Any]) -> str:
    """Return the output whose values a scorer reads; empty where they are not kept."""
    name = options.get("output") or kept.output or (kept.outputs[0] if kept.outputs else "")
    return name if name in kept.outputs else ""
