import pytest
from django.test import Client

from accounts.domain.scopes import Scope
from deployments.models import ComparisonRun
from tests import comparisons, scenes

pytestmark = pytest.mark.django_db


def shown() -> str:
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.READ)})
    return client.get("/services/default/digits/").content.decode()


def test_the_page_tells_agreement_differences_and_the_worst_requests() -> None:
    comparisons.compared_shadow(scenes.service())
    page = shown()
    for words in (
        "Answers compared at step 1",
        "The new version&#x27;s answers agree with stable&#x27;s in 96.67 % of 300 requests",
        "9 of 299 best classes changed",
        "Absolute difference, rows: no difference: ",
        "1 of 3 values are NaN or infinite on one side only",
        "the model ran out of memory",
        "0.6, 0.3, 0.1",
    ):
        assert words in page
    assert " style=" not in page


def test_what_clients_sent_is_written_as_text() -> None:
    of = scenes.service()
    comparisons.compared_shadow(of)
    run = ComparisonRun.objects.get()
    run.worst[0]["request_id"] = run.worst[0]["message"] = "<script>alert(1)</script>"
    run.save()
    assert "<script>alert" not in shown()


def test_a_rollout_whose_policy_compares_nothing_has_no_such_part() -> None:
    scenes.rollout(scenes.service())
    assert "Answers compared" not in shown()
