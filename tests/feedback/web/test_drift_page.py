"""The page of drift: both shapes, what has drifted first, and acceptance."""

import re

import pytest

from accounts.domain.scopes import Scope
from tests._support.page import marked
from tests.deployments._support.pages import signed_in
from tests.deployments._support.platform import Platform
from tests.feedback._support.watched import OF_CLASS, OFTEN_3, STABLE, Watched

PAGE = "/services/default/digits/feedback/drift/"


@pytest.fixture
def watched(platform: Platform) -> Watched:
    return Watched(platform)


def test_without_kept_answers_the_page_says_how_to_begin(platform: Platform) -> None:
    platform.live()
    page = signed_in(Scope.READ).get(PAGE).content.decode()
    assert "keep some" in marked(page, "no-features")[0]


def test_learning_may_end_early(watched: Watched) -> None:
    watched.feed(minutes=4, rows=240)
    writer = signed_in(Scope.WRITE)
    assert "End learning" not in writer.get(PAGE).content.decode()
    watched.feed(minutes=2, rows=240)
    assert "End learning" in writer.get(PAGE).content.decode()
    writer.post(f"{PAGE}accept", {"feature": OF_CLASS})
    assert watched.state()["reference"]["rows"] == 3 * 240


def test_what_has_drifted_is_first_with_both_shapes_and_may_be_accepted(watched: Watched) -> None:
    watched.learn()
    watched.feed(shares=OFTEN_3, minutes=12)
    reader = signed_in(Scope.READ).get(PAGE).content.decode()
    assert f"share of class 3 in answers of {STABLE} is " in marked(reader, "drifted")[0]
    assert re.findall(r'<span class="name">([^<]+)', reader)[0] == OF_CLASS
    assert reader.count('class="shape"') == 2 * 5
    assert "Accept" not in marked(reader, "features")[0]
    writer = signed_in(Scope.WRITE)
    assert "Accept" in marked(writer.get(PAGE).content.decode(), "features")[0]
    writer.post(f"{PAGE}accept", {"feature": OF_CLASS})
    assert watched.row().alarm_at is None
    assert 'data-testid="drifted"' not in writer.get(PAGE).content.decode()


def test_a_canary_that_differs_from_stable_is_said(watched: Watched) -> None:
    watched.learn()
    watched.platform.version(2)
    watched.platform.start("2")
    watched.feed(canary=OFTEN_3, minutes=8)
    page = signed_in(Scope.READ).get(PAGE).content.decode()
    assert "class 3" in marked(page, "canary-differs")[0]
