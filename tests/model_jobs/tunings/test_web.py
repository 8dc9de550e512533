"""The pages of tunings: asked for, followed, and what was chosen brought into a service's file."""

import html
import re
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.services.teams import ownership_set
from deployments.models import InferenceService, Rollout
from model_jobs.models import Tuning
from registry.models import ModelVersion
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from tests.deployments._support.pages import signed_in, text
from tests.deployments._support.tuning_points import BEST, FAST
from tests.deployments._support.tuning_reports import CONFIG, REPORT

pytestmark = pytest.mark.django_db
PAGE = "/models/digits/versions/1/tunings/"


def tuned(of: str = "default/digits", **report: Any) -> Tuning:
    """Return a tuning for a service that has come to its end."""
    client = signed_in(Scope.WRITE)
    address = client.post(PAGE, {"max_latency_p99_ms": "10", "service": of})["Location"]
    row = Tuning.objects.get(pk=int(address.rstrip("/").rpartition("/")[2]))
    done = {"status": "DONE", "finished_at": timezone.now(), "next_try_at": None, "report": {**REPORT, **report}}
    Tuning.objects.filter(pk=row.pk).update(**done)
    return row


def hidden(shown: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(was|document)" value="([^"]*)"', shown)
    return {name: html.unescape(value) for name, value in found}


def test_a_tuning_is_asked_for_with_the_fields_of_the_model() -> None:
    scenes.service()
    signature = {"inputs": [{"name": "tokens", "datatype": "INT64", "shape": [-1, -1]}], "outputs": []}
    ModelVersion.objects.update(signature=signature)
    client = signed_in(Scope.WRITE)
    assert "Shape of tokens" in text(client, PAGE)
    asked = {"max_latency_p99_ms": "20", "service": "default/digits", "budget": "2m", "shape tokens": "128"}
    answer = client.post(PAGE, asked)
    row = Tuning.objects.get()
    assert answer["Location"] == f"{PAGE}{row.pk}/"
    assert (str(row.service), row.order["budget_s"], row.order["shapes"]) == ("default/digits", 120, {"tokens": [128]})
    assert "It waits for its turn" in text(client, answer["Location"])


def test_how_far_it_is_is_shown_and_it_is_stopped() -> None:
    scenes.model_version(1)
    row = scenes.tuning()
    Tuning.objects.update(progress={"spent": 0.4, "measurements": 7, "last": FAST, "best": BEST}, claim="0" * 32)
    client = signed_in(Scope.WRITE)
    shown = text(client, f"{PAGE}{row.pk}/")
    assert "7 measured, 40% of its time spent" in shown
    assert 'value="40"' in shown
    assert "900 requests/s" in shown
    client.post(f"{PAGE}{row.pk}/stop")
    assert Tuning.objects.get().status == "FAILED"


def test_what_was_found_is_a_table_and_a_drawing() -> None:
    scenes.service()
    row = tuned()
    shown = text(signed_in(Scope.WRITE), f"{PAGE}{row.pk}/")
    assert "3.00 times what it does as it is." in shown
    drawn = shown.partition('<svg class="curves frontier"')[2].partition("</svg>")[0]
    assert drawn.count("<circle") == 6
    assert "limit 10 ms" in shown
    assert '<tr class="differs">' in shown
    assert "1 could not be served" in shown
    assert "max_batch_size: 8" in shown


def test_what_was_chosen_is_looked_at_and_then_applied_to_the_service_that_is_named() -> None:
    scenes.service()
    row = tuned()
    client = signed_in(Scope.WRITE)
    look = client.post(f"{PAGE}{row.pk}/look", {"service": "default/digits"}, headers={"HX-Request": "true"})
    shown = look.content.decode()
    assert "Apply this to default/digits?" in shown
    assert "<ins>          max_queue_delay_microseconds: 100</ins>" in shown
    assert not Rollout.objects.exists()
    whole = client.post(f"{PAGE}{row.pk}/look", {"service": "default/digits"}).content.decode()
    assert "Apply this to default/digits?" in whole
    assert "<h1>" in whole

    answer = client.post("/services/default/digits/config/apply", hidden(shown))
    assert answer["Location"] == "/services/default/digits/"
    document = InferenceService.objects.get().document
    assert document["spec"]["predictor"]["model"]["config"] == CONFIG
    assert Rollout.objects.get().to_revision.name == "digits-00002"


def test_a_service_that_was_configured_anew_meanwhile_is_not_overwritten() -> None:
    scenes.service()
    row = tuned()
    Tuning.objects.update(model_config={"max_batch_size": 2})
    look = signed_in(Scope.WRITE).post(f"{PAGE}{row.pk}/look", {"service": "default/digits"}).content.decode()
    assert marked(look, "refused")
    assert "tune it again" in look


def test_nothing_to_apply_is_said() -> None:
    scenes.service()
    row = tuned(chosen=None, reason="no setting keeps p99 under 10 ms", conclusion="")
    shown = text(signed_in(Scope.WRITE), f"{PAGE}{row.pk}/")
    assert "No setting keeps p99 under 10 ms" in shown
    assert not marked(shown, "look-at-change")


def test_another_teams_service_is_not_offered_and_not_looked_at(browser: Browser) -> None:
    scenes.service()
    row = tuned()
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert marked(page(client, f"{PAGE}{row.pk}/"), "look-at-change")
    ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=timezone.now())
    shown = page(client, f"{PAGE}{row.pk}/")
    assert "No service that you may change serves version 1." in shown
    assert '<option value="default/digits"' not in page(client, PAGE)
    assert client.post(f"{PAGE}{row.pk}/look", {"service": "default/digits"}).status_code == 404
    assert client.post(PAGE, {"max_latency_p99_ms": "5", "service": "default/digits"}).status_code == 404


def test_who_may_not_write_sees_the_result_alone(browser: Browser) -> None:
    scenes.service()
    row = tuned()
    viewer = browser("default", Role.VIEWER)
    assert not marked(page(viewer, PAGE), "start-search")
    assert not marked(page(viewer, f"{PAGE}{row.pk}/"), "look-at-change")
    for verb in ("look", "stop"):
        assert viewer.post(f"{PAGE}{row.pk}/{verb}", {"service": "default/digits"}).status_code == 403


def test_who_may_change_the_model_alone_gets_no_environment_of_a_service(browser: Browser) -> None:
    scenes.service()
    ownership_set(team="red", kind=Owned.MODEL, name="digits", actor="test", now=timezone.now())
    browser("default", Role.VIEWER)
    client = browser("red", Role.DEPLOYER)
    asked = {"max_latency_p99_ms": "5", "service": "default/digits"}
    assert client.post(PAGE, asked).status_code == 403
    api = f"/api/v1{PAGE.removesuffix('/')}"
    assert client.post(api, {**asked, "max_latency_p99_ms": 5}, content_type="application/json").status_code == 403
    assert not Tuning.objects.exists()


def test_the_number_of_queries_does_not_grow(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    scenes.service()
    client = signed_in()
    scenes.tuning()
    with django_assert_num_queries(8) as few:
        client.get(PAGE)
    for _ in range(5):
        scenes.tuning()
    with django_assert_num_queries(len(few.captured_queries)):
        client.get(PAGE)
