"""When the page of a service is loaded again for its viewers."""

from inspect import unwrap

import pytest
from django.http import HttpRequest

from deployments.reconcile.participants import traffic
from deployments.web import streams
from events.services.live_feed import Marks, Topic
from tests import scenes

pytestmark = pytest.mark.django_db


def topic() -> Topic:
    found: Topic = unwrap(streams.service_stream)(HttpRequest(), namespace="default", name="digits")
    return found


def test_error_budgets_are_read_again_with_each_sample_of_the_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    service, seconds = scenes.service(), [0.0]
    monkeypatch.setattr(streams.time, "monotonic", lambda: seconds[0])
    marks = Marks(everything=7, of={service.pk: (1, 1)})
    without = topic()
    service.document["spec"]["objectives"] = {"availability": 99}
    service.save(update_fields=["document"])
    with_objectives = topic()
    before = without.mark(marks), with_objectives.mark(marks)
    seconds[0] += traffic.EVERY.total_seconds()
    assert without != with_objectives
    assert without.mark(marks) == before[0]
    assert with_objectives.mark(marks) != before[1]
    assert with_objectives.row == without.row == service.pk
    assert with_objectives.mark(Marks(everything=8, of={service.pk: (1, 1)})) == with_objectives.mark(marks)
