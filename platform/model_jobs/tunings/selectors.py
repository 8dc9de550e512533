"""Queries of a version's tunings."""

from django.db.models import QuerySet

from common.errors import NotFound
from model_jobs.models import Tuning


def tuning_query(*, model: str, number: int) -> QuerySet[Tuning]:
    """Return the tunings of a version."""
    related = ("service", "cluster", "model_version__model")
    return Tuning.objects.select_related(*related).filter(
        model_version__model__name=model, model_version__number=number
    )


def tuning_get(*, model: str, number: int, tuning_id: int) -> Tuning:
    """Return a tuning of the version; raises NotFound."""
    row = tuning_query(model=model, number=number).filter(pk=tuning_id).first()
    if row is None:
        raise NotFound(f"model {model!r} version {number} has no tuning {tuning_id}")
    return row
