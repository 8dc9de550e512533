"""Two versions beside each other, and their page."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from registry.models import ModelVersion
from registry.web.version_diff import beside
from tests import scenes
from tests._support.page import marked
from tests.accounts._support.pages import Browser, page

WIDE = {
    "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 8]}],
    "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
}
PAGE = "/models/digits/versions/2/compare"
PICKER = "/models/digits/compare"


def chosen(shown: str) -> dict[str, str]:
    """Return the options that are chosen, by the name of their field."""
    fields = re.findall(r'<select id="(\w+)"(.*?)</select>', shown, re.DOTALL)
    return {name: "".join(re.findall(r'value="(\d+)" selected', options)) for name, options in fields}


def profile(*latencies: tuple[int, float]) -> dict[str, object]:
    batches = [{"batch_size": size, "latency_p50_us": us, "latency_p99_us": 2 * us} for size, us in latencies]
    return {"memory_bytes": 1 << 20, "batches": batches}


@pytest.fixture
def two(db: None) -> tuple[ModelVersion, ModelVersion]:
    old, new = scenes.model_version(1), scenes.model_version(2)
    old.profile, new.profile = profile((1, 100.0), (2, 150.0)), profile((1, 80.0), (4, 200.0))
    old.lineage, new.lineage = {"source_commit": "abc", "parameters": {"lr": "0.1"}}, {"source_commit": "abc"}
    new.tags, new.signature = {"quantised": ""}, WIDE
    for version in (old, new):
        version.save()
    return old, new


def test_what_differs_is_told_apart_from_what_both_have(two: tuple[ModelVersion, ModelVersion]) -> None:
    found = beside(*two)
    assert {(fact.name, fact.before, fact.after) for fact in found.differing} == {
        ("Parameter lr", "0.1", None),
        ("Tag quantised", None, "set"),
    }
    assert ("Commit", "abc") in {(fact.name, fact.after) for fact in found.same}
    assert [(fact.name, fact.is_same) for fact in found.tensors] == [("in: image", False), ("out: label", True)]


def test_the_median_changes_where_both_were_measured(two: tuple[ModelVersion, ModelVersion]) -> None:
    changes = {each.batch_size: each.change_percent for each in beside(*two).latencies}
    assert changes == {1: pytest.approx(-20), 2: None, 4: None}


def test_the_page_says_what_clients_would_meet(browser: Browser, two: tuple[ModelVersion, ModelVersion]) -> None:
    client = browser()
    shown = page(client, f"{PAGE}?with=1")
    assert "breaks clients" in shown
    assert "Input &#x27;image&#x27; takes [-1,8], clients send [-1,4]." in shown
    assert "-20\u00a0%" in shown
    assert 'href="/models/digits/versions/1/compare?with=2"' in shown
    ModelVersion.objects.filter(number=2).update(status="PENDING", signature={}, profile={})
    assert marked(page(client, f"{PAGE}?with=1"), "contract-unknown")


def test_a_version_that_is_not_there_is_refused(browser: Browser, two: tuple[ModelVersion, ModelVersion]) -> None:
    client = browser()
    assert client.get(f"{PAGE}?with=7").status_code == 404
    for asked in ("?with=-1", "?with=champion"):
        answer = client.get(f"{PAGE}{asked}")
        assert (answer.status_code, b"expected the number of a version" in answer.content) == (400, True)


def test_without_a_second_version_two_are_chosen(browser: Browser, two: tuple[ModelVersion, ModelVersion]) -> None:
    client = browser()
    for asked in ("", "?with="):
        assert client.get(f"{PAGE}{asked}").headers["Location"] == f"{PICKER}?version=2"
    shown = page(client, f"{PICKER}?version=1")
    assert chosen(shown) == {"version": "1", "with": "2"}
    assert chosen(page(client, PICKER)) == {"version": "2", "with": "1"}
    assert chosen(page(client, f"{PICKER}?with=2")) == {"version": "1", "with": "2"}
    scenes.model_version(3)
    assert chosen(page(client, f"{PICKER}?version=2")) == {"version": "2", "with": "1"}
    assert client.get(f"{PICKER}?version=2&with=1").headers["Location"] == f"{PAGE}?with=1"
    assert f'href="{PICKER}"' in page(client, "/models/digits/")


def test_what_cannot_be_compared_is_said(browser: Browser, two: tuple[ModelVersion, ModelVersion]) -> None:
    client = browser()
    assert "Version 2 was chosen twice" in page(client, f"{PICKER}?version=2&with=2")
    assert client.get(f"{PICKER}?version=2&with=x").status_code == 400
    assert client.get(f"{PICKER}?version=7&with=1", follow=True).status_code == 404
    assert client.get("/models/nothing/compare").status_code == 404
    two[1].delete()
    assert "Version 1 is the only one" in page(client, PICKER)


def test_the_choice_asks_the_same_number_of_queries_for_many_versions(
    browser: Browser, two: tuple[ModelVersion, ModelVersion], django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client = browser()
    with CaptureQueriesContext(connection) as seen:
        page(client, PICKER)
    for number in range(3, 9):
        scenes.model_version(number)
    with django_assert_num_queries(len(seen)):
        page(client, PICKER)


def test_a_versions_page_draws_its_measurements_and_offers_the_others(
    browser: Browser, two: tuple[ModelVersion, ModelVersion]
) -> None:
    shown = page(browser(), "/models/digits/versions/1/")
    assert 'aria-label="Median by batch size, version 1: 100\u00a0µs for 1, 150\u00a0µs for 2"' in shown
    assert '<option value="2">version 2' in shown
    assert '<option value="1">' not in shown
