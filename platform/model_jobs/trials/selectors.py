"""Queries of a version's trials."""

from django.db.models import QuerySet

from common.errors import NotFound
from model_jobs.models import Trial


def trial_query(*, model: str, number: int) -> QuerySet[Trial]:
    """Return the trials of a version, without request and response bodies, which are long."""
    rows = Trial.objects.select_related("cluster", "model_version__model").defer("request", "answer")
    return rows.filter(model_version__model__name=model, model_version__number=number)


def trial_get(*, model: str, number: int, trial_id: int) -> Trial:
    """Return a trial of the version, with request and response; raises NotFound."""
    row = trial_query(model=model, number=number).defer(None).filter(pk=trial_id).first()
    if row is None:
        raise NotFound(f"model {model!r} version {number} has no trial {trial_id}; they are kept for a day")
    return row
