"""The page of a service's feedback: its states, forms, who sees what, and hostile values."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from clusters.models import Cluster
from deployments.models import InferenceService
from feedback.models import Answer, Kept, Label, Score, ServiceScorer
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.cluster_files import LEAST
from tests.deployments._support.pages import DETAIL, signed_in, text
from tests.feedback._support.scenes import DIGIT, Given, answered, kept, scorer, tensors

pytestmark = pytest.mark.django_db
PAGE = "/services/default/digits/feedback/"
STABLE, CANARY = "digits-00001", "digits-00002"
MARKUP = "<script>alert('x')</script>&\"'"


def scored(count: int = 40, **more: Any) -> InferenceService:
    """Return a service with scores of stable and canary, each fourth of the canary's wrong."""
    service, now = scenes.service(), timezone.now()
    scenes.rollout(service)
    kept(service, now)
    batch = [
        Given(
            f"{revision}-{number}",
            revision,
            now - timedelta(minutes=10 * number),
            loss=float(revision == CANARY and number % 4 == 0),
            top=[[8 if number % 4 == 0 else 3, 0.93]],
            **more,
        )
        for number in range(count)
        for revision in (STABLE, CANARY)
    ]
    answered(service, [scorer(service, now)], batch)
    return service


def test_the_empty_page_shows_how_to_begin_and_the_forms_begin() -> None:
    service = scenes.service()
    client = signed_in(Scope.WRITE)
    shown = text(client, PAGE)
    assert marked(shown, "feedback-steps")
    assert marked(shown, "to-drift") == ["Drift"]
    assert "fairlead feedback keep default/digits" in shown
    assert "http://testserver/api/v1/services/default/digits/feedback" in shown
    said = {"share_percent": "12,5", "days": "7", "max_rows": "", "max_size_mib": "2", "parameters": "region, user"}
    assert client.post(f"{PAGE}keep", {**said, "keeps_inputs": "on"})["Location"] == PAGE
    row = Kept.objects.get(service=service)
    assert (row.share_percent, row.days, row.max_rows, row.max_bytes) == (12.5, 7, 1_000_000, 2 << 20)
    assert (row.parameters, row.outputs, row.keeps_inputs) == (["region", "user"], [], True)
    assert (
        client.post(f"{PAGE}scorers", {"scorer": "far", "kind": "absoluteError", "options": "bound: 10"}).status_code
        == 302
    )
    one = ServiceScorer.objects.get()
    assert (one.name, one.kind, one.options) == ("far", "absoluteError", {"bound": 10})
    shown = text(client, PAGE)
    assert "12.5 % of the answers; inputs, encrypted; parameters region, user" in marked(shown, "kept-now")[0]
    assert marked(shown, "no-scores")
    assert "Saved: answers to further requests are kept." in shown
    assert client.post(f"{PAGE}stop").status_code == 302
    assert "deleted 7 days after" in marked(text(client, PAGE), "kept-stopped")[0]
    assert client.post(f"{PAGE}scorers/far/delete").status_code == 302
    assert not ServiceScorer.objects.exists()
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert actions >= {"answers.keep", "answers.stop", "scorer.set", "scorer.delete"}


@pytest.mark.parametrize(
    ("action", "said", "words"),
    [
        pytest.param("keep", {"share_percent": "all"}, "The share is &#x27;all&#x27;; expected a number", id="share"),
        pytest.param("keep", {"days": "1.5"}, "The number of days is 1.5; expected a whole number", id="half a day"),
        pytest.param("keep", {"max_size_mib": "0"}, "Max_bytes is 0", id="no bytes"),
        pytest.param("keep", {"days": "inf"}, "expected a number", id="infinite"),
        pytest.param("keep", {"output": "none"}, "has the outputs", id="unknown output"),
        pytest.param("scorers", {"scorer": "a", "kind": "best"}, "it is one of accuracy", id="unknown kind"),
        pytest.param("scorers", {"scorer": "a", "kind": "topK"}, "needs the option k", id="no option"),
        pytest.param("scorers", {"scorer": "A b", "kind": "accuracy"}, "A b", id="no name"),
        pytest.param("scorers", {"scorer": "a", "kind": "topK", "options": "k: : 1"}, "Line 1", id="no YAML"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(action: str, said: dict[str, str], words: str) -> None:
    scenes.service()
    answer = signed_in().post(f"{PAGE}{action}", said, headers={"HX-Request": "true"})
    assert answer.status_code == 400, answer.content
    assert words in answer.content.decode()
    assert not Kept.objects.exists()
    assert not ServiceScorer.objects.exists()


def test_quality_is_shown_by_scorer_and_revision_with_a_drawing() -> None:
    service = scored(parameters={"region": "south"})
    scorer(service, timezone.now(), "second", "brier")
    client = signed_in()
    shown = text(client, PAGE)
    assert "25 %" in shown
    assert "of at most 1,000,000" in shown
    assert "Labelled" in shown
    drawn = shown.partition('<svg class="curves quality"')[2].partition("</svg>")[0]
    assert drawn.count("<polyline") >= 2
    assert 'data-role="canary"' in drawn
    assert "canary worse" in marked(shown, "worse-slice")
    assert "<code>region</code> south" in shown
    assert marked(text(client, f"{PAGE}?scorer=second"), "no-scores")
    assert "24 hours" not in shown
    for days in (1, 7, 30):
        assert "Quality" in text(client, f"{PAGE}?days={days}")
    for query, status in (("scorer=none", 404), ("days=x", 400), ("days=91", 400), ("days=-1", 400)):
        assert client.get(f"{PAGE}?{query}").status_code == status


def test_the_worst_answers_are_shown_with_pictures_to_admins_alone() -> None:
    values = {"inputs": tensors(pixels=DIGIT), "outputs": tensors(probabilities=[0.07, 0.93])}
    scored(values=values)
    shown = text(signed_in(), PAGE)
    worst = shown.partition('id="worst"')[2].partition("</section>")[0]
    assert worst.count("data:image/png;base64,") == 8
    assert re.findall(rf"<code>({CANARY}-\d+)</code>", worst) == [f"{CANARY}-{number}" for number in range(0, 32, 4)]
    assert "<strong>8 (0.93)</strong>" in worst
    assert "Input <code>pixels</code>" in worst
    for scope in (Scope.READ, Scope.WRITE):
        hidden = text(signed_in(scope), PAGE)
        assert "admins of the team that owns namespace default" in marked(hidden, "worst-hidden")[0]
        assert f"{CANARY}-0" not in hidden
        assert "data:image" not in hidden


def test_readers_see_no_forms_and_may_not_post() -> None:
    scored()
    client = signed_in(Scope.READ)
    shown = text(client, PAGE)
    assert '<form method="post" action="/services' not in shown
    assert 'action="/services/default/digits/feedback' not in shown
    for action in ("keep", "stop", "scorers", "scorers/right/delete"):
        assert client.post(f"{PAGE}{action}").status_code == 403
    Kept.objects.all().delete()
    InferenceService.objects.update(kept_percent=0)
    assert marked(text(client, PAGE), "kept-nothing")
    assert Client().get(PAGE).status_code == 302
    assert client.get("/services/default/other/feedback/").status_code == 404


def test_a_cluster_without_the_way_back_says_what_is_missing() -> None:
    scenes.service()
    Cluster.objects.update(kind="kubernetes", document={**LEAST, "name": "local"})
    shown = text(signed_in(), PAGE)
    assert "controlPlaneUrl" in marked(shown, "cannot-keep")[0]
    assert "Keep answers</button>" not in shown


def test_hostile_values_are_shown_as_text() -> None:
    service, now = scenes.service(), timezone.now()
    kept(service, now, parameters=[MARKUP], output=MARKUP, outputs=[MARKUP])
    InferenceService.objects.update(kept_percent=100)
    one = scorer(service, now)
    ServiceScorer.objects.update(unscored=2, unscored_reason=MARKUP)
    values = {
        "inputs": {MARKUP: {"datatype": "BYTES", "shape": [1], "data": [MARKUP]}},
        "outputs": {"broken": {"datatype": "FP32", "shape": [9], "data": [MARKUP]}, "odd": "text"},
    }
    given = Given(
        MARKUP,
        STABLE,
        now,
        top=[[MARKUP, 0.5], [1], [], [2, None]],
        label=[MARKUP, 1],
        loss=1.0,
        parameters={MARKUP: MARKUP},
        values=values,
    )
    answered(service, [one], [given])
    shown = text(signed_in(), PAGE)
    assert "<script>alert" not in shown
    assert "&lt;script&gt;alert" in shown.partition('id="worst"')[2].partition("</section>")[0]
    assert MARKUP in marked(shown, "unscored")[0]


def test_values_that_are_gone_or_unreadable_do_not_break_the_page() -> None:
    scored(values={"inputs": {}, "outputs": {}, "left_out": "inputs take more than the 64 KiB that are kept"})
    client = signed_in()
    assert "Inputs take more than the 64 KiB that are kept." in text(client, PAGE)
    Answer.objects.update(sealed=b"damaged")
    assert "FAIRLEAD_SECRET_KEY" in text(client, PAGE)
    Label.objects.all().delete()
    Answer.objects.all().delete()
    assert marked(text(client, PAGE), "worst-gone")


@pytest.mark.parametrize(
    ("top", "kind", "words"),
    [
        pytest.param([[8, 0.934]], "accuracy", "8 (0.934)", id="a class and its score"),
        pytest.param([[2, 2.0]], "accuracy", "2", id="a class that the model returns"),
        pytest.param([["cat", 1.0]], "accuracy", "cat", id="a text"),
        pytest.param([[0, 17.25]], "absoluteError", "17.2", id="a regression"),
        pytest.param([[number, 0.5] for number in range(6)], "accuracy", "0 (0.5), 1 (0.5)", id="several rows"),
    ],
)
def test_an_answer_is_shown_by_its_kind(top: list[Any], kind: str, words: str) -> None:
    service, now = scenes.service(), timezone.now()
    one = scorer(service, now, "one", kind, bound=20)
    answered(service, [one], [Given("x", STABLE, now, top=top, loss=1.0)])
    worst = text(signed_in(), PAGE).partition('id="worst"')[2].partition("</section>")[0]
    assert f"<strong>{words}" in worst
    assert (len(top) > 4) == ("…</strong>" in worst)


def test_all_right_and_full_are_said() -> None:
    service, now = scenes.service(), timezone.now()
    kept(service, now, max_rows=2, left_out=7)
    answered(service, [scorer(service, now)], [Given("a", STABLE, now), Given("b", STABLE, now)])
    shown = text(signed_in(), PAGE)
    assert marked(shown, "none-wrong")
    assert "7 so far" in marked(shown, "feedback-full")[0]


def test_the_number_of_queries_is_the_same_for_few_and_many(
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    service = scored(values={"inputs": tensors(pixels=DIGIT), "outputs": {}})
    for name in ("a", "b", "c"):
        scorer(service, timezone.now(), name)
    client = signed_in()
    client.get(PAGE)
    with django_assert_max_num_queries(17):
        client.get(f"{PAGE}?scorer=right")


def test_the_page_of_the_service_has_a_section_once_there_are_scorers() -> None:
    service = scenes.service()
    client = signed_in()
    assert f'href="{PAGE}"' in text(client, DETAIL)
    assert marked(text(client, DETAIL), "right-answers") == []
    scenes.rollout(service)
    now = timezone.now()
    one = scorer(service, now)
    answered(service, [one], [Given("a", STABLE, now), Given("b", CANARY, now, loss=1.0)])
    (shown,) = marked(text(client, DETAIL), "right-answers")
    assert "right" in shown
    assert "100 %" in shown
    Score.objects.all().delete()
