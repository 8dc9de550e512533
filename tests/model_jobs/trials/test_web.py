"""Trials on the page "Try it": started, followed, stopped and shown."""

import json
from datetime import datetime
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from integrations.clusters.base import Job
from jobs.services.claim import begin, end, renew
from jobs.services.claim_renewal import LEASE
from jobs.services.kinds import JobClaim
from model_jobs.models import Trial
from model_jobs.trials.domain.order import Tried, steps_at
from model_jobs.trials.services import TRIAL
from registry.models import ModelVersion
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page
from tests.deployments._support.platform import Platform

PAGE = "/models/digits/versions/2/try/"
ROW = {"data-0": "[[1, 2, 3, 4]]"}
HTMX = {"HX-Request": "true"}
REPORT = {"status": 200, "load_ms": 412.5, "first_ms": 2.25, "infer_ms": 0.31, "runs": 5, "labels": {}}
SCORES = {"name": "scores", "datatype": "FP32", "shape": [1, 3], "data": [0.1, 0.7, 0.2]}


@pytest.fixture(autouse=True)
def version(platform: Platform) -> ModelVersion:
    """Return a version that no service serves."""
    scenes.service()
    return scenes.model_version(2)


def start(client: Client, **more: str) -> str:
    answer = client.post(f"{PAGE}trials/start", {**ROW, **more}, headers=HTMX)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def claimed() -> JobClaim[Trial, Job]:
    claim = begin(TRIAL, Trial.objects.get().pk, now=now(), lease=LEASE)
    assert claim is not None
    return claim


def now() -> datetime:
    return timezone.now()


def shown(client: Client, report: dict[str, Any], answer: str = "") -> str:
    start(client)
    assert end(TRIAL, claimed(), Tried(answer, report), now=now())
    return page(client, f"{PAGE}trials/{Trial.objects.get().pk}/")


def test_a_trial_is_started_and_the_page_asks_how_far_it_is(browser: Browser) -> None:
    client = browser("default", Role.DEPLOYER, Scope.WRITE)
    assert marked(page(client, PAGE), "runtime-is-started")
    said = start(client)
    row = Trial.objects.get()
    assert json.loads(row.request)["inputs"][0]["data"] == [[1, 2, 3, 4]]
    where = f"{PAGE}trials/{row.pk}/"
    assert f'hx-get="{where}"' in said
    assert "Waiting for a worker…" in said
    asks = {**HTMX, "Trial-Seen": "0-00000000"}
    assert asks["Trial-Seen"] in said
    assert client.get(where, headers=asks).status_code == 204
    assert renew(TRIAL, claimed(), progress={"stage": "loading the model"}, now=now(), lease=LEASE)
    assert "Loading the model…" in client.get(where, headers=asks).content.decode()
    assert "[[1, 2, 3, 4]]" in page(client, where), "the form has what was typed"


def test_without_a_script_it_leads_to_the_page_of_the_trial(browser: Browser) -> None:
    answer = browser().post(f"{PAGE}trials/start", ROW)
    assert (answer.status_code, answer.headers["Location"]) == (302, f"{PAGE}trials/{Trial.objects.get().pk}/")


def test_the_answer_is_shown_with_labels_and_times(browser: Browser) -> None:
    report = {**REPORT, "labels": {"scores": ["dog", "cat"]}}
    said = shown(browser(), report, json.dumps({"outputs": [SCORES]}))
    for text in ("cat", "dog", "70.0", "0.31 ms", "the median of 5", "loaded in 412.5 ms", "first answered in 2.25 ms"):
        assert text in said
    assert "curl" in said


@pytest.mark.parametrize(
    ("report", "text"),
    [
        pytest.param(
            {**REPORT, "status": 400, "error": "bad shape"}, "The runtime answered 400: bad shape", id="refused"
        ),
        pytest.param({**REPORT, "error": "the answer has 9 bytes"}, "The answer has 9 bytes", id="too large"),
    ],
)
def test_why_there_is_no_answer_is_told(browser: Browser, report: dict[str, Any], text: str) -> None:
    assert text in shown(browser(), report)


def test_one_that_was_made_over_the_api_is_shown_whatever_it_has(browser: Browser) -> None:
    Trial.objects.filter(pk=scenes.trial(2).pk).update(request='{"inputs": [1, {"name": "image", "data": {}}]}')
    assert "Waiting for a worker" in page(browser(), f"{PAGE}trials/{Trial.objects.get().pk}/")


def test_it_is_stopped(browser: Browser) -> None:
    client = browser()
    start(client)
    where = f"{PAGE}trials/{Trial.objects.get().pk}/stop"
    assert "was not tried: somebody stopped it" in client.post(where, headers=HTMX).content.decode()
    assert client.post(where).status_code == 409


def test_a_form_that_cannot_be_sent_starts_nothing(browser: Browser) -> None:
    assert "Input image: that is not JSON" in start(browser(), **{"data-0": "[1, "})
    ModelVersion.objects.filter(number=2).update(status="REJECTED")
    assert "is REJECTED, not READY" in start(browser())
    assert "Try it</span>" not in page(browser(), PAGE)
    assert not Trial.objects.exists()


@pytest.mark.parametrize(
    ("who", "status"),
    [
        pytest.param(("default", Role.VIEWER, Scope.ADMIN), 403, id="a viewer"),
        pytest.param(("default", Role.DEPLOYER, Scope.READ), 403, id="a narrow token"),
        pytest.param(("red", Role.ADMIN, Scope.ADMIN), 404, id="another team"),
    ],
)
def test_who_may_not_change_the_model_starts_nothing(
    browser: Browser, who: tuple[str, Role, Scope], status: int
) -> None:
    assert browser(*who).post(f"{PAGE}trials/start", ROW).status_code == status
    assert browser(*who).post(f"{PAGE}trials/{scenes.trial(2).pk}/stop").status_code == status
    assert Trial.objects.get().status == "PENDING"


def test_a_viewer_sees_why_there_is_no_button(browser: Browser) -> None:
    said = page(browser("default", Role.VIEWER, Scope.READ), PAGE)
    assert marked(said, "nothing-answers")
    assert "Try it</span>" not in said


def test_the_page_asks_the_same_number_of_queries_for_many_trials(browser: Browser) -> None:
    client = browser()
    counts = []
    for _ in range(2):
        row = scenes.trial(2)
        with CaptureQueriesContext(connection) as seen:
            page(client, f"{PAGE}trials/{row.pk}/")
        counts.append(len(seen))
    assert counts[0] == counts[1]


@pytest.mark.parametrize(
    ("stage", "states"),
    [
        ("", "now next next next"),
        ("starting the runtime", "done now next next"),
        ("loading the model", "done done now next"),
        ("answering", "done done done now"),
        ("a stage of a later runtime", "done now next next"),
    ],
)
def test_steps(stage: str, states: str) -> None:
    assert [step.state for step in steps_at(stage)] == states.split()
