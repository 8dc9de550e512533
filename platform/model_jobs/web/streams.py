"""Live updates of the pages of builds and tunings."""

from functools import partial

from django.http import HttpRequest

from accounts.domain.scopes import Scope
from events.services.live_feed import Topic
from events.web.live_updates import Source, of_model, row_topic, streamed
from model_jobs.builds.selectors import build_get
from model_jobs.selectors import build_marks, tuning_marks
from model_jobs.tunings.selectors import tuning_get
from model_jobs.web.pages import build_page, tuning_page

BUILDS, TUNINGS = Source(build_marks, Scope.READ), Source(tuning_marks, Scope.READ)


@streamed(BUILDS, of_model)
def build_stream(_request: HttpRequest, model: str, number: int, build_id: int) -> Topic:
    """Stream what changes on a build's page; raises NotFound."""
    row = build_get(model=model, number=number, build_id=build_id)
    return row_topic("build", row.pk, partial(build_page, model, number, build_id))


@streamed(TUNINGS, of_model)
def tuning_stream(_request: HttpRequest, model: str, number: int, tuning_id: int) -> Topic:
    """Stream what changes on a tuning's page; raises NotFound."""
    row = tuning_get(model=model, number=number, tuning_id=tuning_id)
    return row_topic("tuning", row.pk, partial(tuning_page, model, number, tuning_id))
