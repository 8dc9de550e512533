"""The list of a model's versions, narrowed as people and programs ask."""

import pytest
from django.utils import timezone

from registry.models import ModelVersion
from registry.services import alias_set
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

MODEL = "/models/digits/"


@pytest.fixture
def versions(db: None) -> None:
    """Three of them: an approved one that an alias means, one to be reviewed, and a rejected one."""
    for number in (1, 2, 3):
        scenes.model_version(number)
    now = timezone.now()
    alias_set(model="digits", name="champion", number=1, now=now, actor="test")
    rows = ModelVersion.objects.filter(model__name="digits")
    rows.filter(number=1).update(approval="approved", approval_at=now, tags={"stage": "live"})
    rows.filter(number=3).update(status="REJECTED")


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("", [3, 2, 1]),
        ("status=READY", [2, 1]),
        ("status=REJECTED", [3]),
        ("approval=unreviewed", [3, 2]),
        ("approval=unreviewed&status=READY", [2]),
        ("alias=champion", [1]),
        ("alias=old", []),
        ("tag=stage%3Dlive", [1]),
        ("status=&approval=&alias=&tag=", [3, 2, 1]),
    ],
)
def test_versions_are_narrowed_as_the_form_asks(
    browser: Browser, versions: None, query: str, numbers: list[int]
) -> None:
    client = browser()
    part = client.get(f"{MODEL}?{query}", headers={"HX-Request": "true", "HX-Target": "versions"}).content.decode()
    assert part.strip().startswith('<div id="versions">')
    for shown in (part, page(client, f"{MODEL}?{query}")):
        there = [number for number in (3, 2, 1) if f'<a class="name" href="{MODEL}versions/{number}/">' in shown]
        assert there == numbers
        assert bool(marked(shown, "no-version-like-that")) == (not numbers)


def test_the_form_says_what_the_address_asks_for(browser: Browser, versions: None) -> None:
    shown = page(browser(), f"{MODEL}?status=READY&approval=approved&alias=champion")
    for text in ("<option selected>READY<", "<option selected>approved<", 'value="champion"', "Show all"):
        assert text in shown


def test_a_status_that_no_version_can_have_is_refused(browser: Browser, versions: None) -> None:
    answer = browser().get(f"{MODEL}?status=GREAT")
    assert answer.status_code == 400
    assert "expected PENDING or READY or REJECTED" in answer.content.decode()


def test_one_version_alone_needs_no_form(browser: Browser) -> None:
    scenes.model_version(1)
    assert "Filter the versions" not in page(browser(), MODEL)


def test_the_api_finds_the_version_of_an_alias(browser: Browser, versions: None) -> None:
    results = browser().get("/api/v1/models/digits/versions?alias=champion").json()["results"]
    assert [row["number"] for row in results] == [1]
