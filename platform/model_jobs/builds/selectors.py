"""Queries of a version's builds."""

from django.db.models import QuerySet

from common.errors import NotFound
from model_jobs.models import Build


def build_query(*, model: str, number: int) -> QuerySet[Build]:
    """Return the builds of a version."""
    return Build.objects.select_related("cluster", "version", "model_version__model").filter(
        model_version__model__name=model, model_version__number=number
    )


def build_get(*, model: str, number: int, build_id: int) -> Build:
    """Return a build of the version; raises NotFound."""
    row = build_query(model=model, number=number).filter(pk=build_id).first()
    if row is None:
        raise NotFound(f"model {model!r} version {number} has no build {build_id}")
    return row
