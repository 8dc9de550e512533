"""The page of one rollout, on the real database and the real services."""

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from accounts.services.teams import member_delete, member_set, team_create
from deployments.domain.phases import Code, Phase
from deployments.models import Rollout
from deployments.reconcile.service_change import changing
from deployments.services import rollout_abort
from events.models import Event
from tests import measuring, scenes
from tests._support.page import marked
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db


def address(row: Rollout) -> str:
    return f"/services/{row.service.namespace}/{row.service.name}/rollouts/{row.pk}/"


def paused() -> Rollout:
    row = scenes.rollout(scenes.service())
    reason = {"reason_code": Code.PAUSED_BY_STEP, "reason_message": "step 2 asks for a person"}
    scenes.move(row, step_index=1, phase=Phase.PAUSED, **reason)
    return row


def test_it_says_where_the_rollout_is_why_it_waits_and_what_was_seen() -> None:
    row = scenes.rollout(scenes.service(), step_index=1)

    page = text(signed_in(), address(row))

    for words in (
        "<title>digits 1 → 2",
        "By policy <strong>careful</strong>",
        "The canary has answered 200 requests at 25 %",
        "Changes when",
        'aria-current="step"',
        "<step-clock data-since=",
        "Step 2 of 3, 25 %",
        "of 1,000 requests in this step",
        "1 of 200 canary requests failed",
        "was started by test",
    ):
        assert words in page


def test_what_an_earlier_attempt_counted_is_told_as_its_own() -> None:
    row = scenes.rollout(scenes.service())
    with changing(row.service_id, now=timezone.now()) as change:
        change.newest.attempt, change.newest.phase = 2, Phase.PENDING
        change.newest.save()
    client = signed_in()

    page, of_service = text(client, address(row)), text(client, "/services/default/digits/")

    assert marked(page, "nothing-counted")
    for each in (page, of_service):
        assert 'id="analysis-1-0"' in each
        assert "at 10 %, attempt 1" in each
    assert not marked(page, "what-decides")
    assert 'id="analysis-now"' not in of_service


def test_each_measurement_says_what_would_decide_it_and_where_its_history_is() -> None:
    row = scenes.rollout(scenes.service())
    measuring.measure(row, looks=30, canary_errors=0.02)

    page = text(signed_in(), address(row))

    assert f'data-src="/api/v1/rollouts/{row.pk}/evidence?attempt=1" data-metric="server_errors"' in page
    assert "more good requests at least, and fails once the evidence against it is clear" in page


def test_the_page_of_a_service_leads_to_it() -> None:
    row = scenes.rollout(scenes.service())
    assert f'href="{address(row)}"' in text(signed_in(), "/services/default/digits/")


def test_an_earlier_rollout_keeps_its_page_and_has_no_buttons() -> None:
    first = scenes.rollout(scenes.service())
    rollout_abort(rollout_id=first.pk, actor="alice", now=timezone.now(), comment="wrong labels")
    second = scenes.rollout(first.service, version=3)

    page = text(signed_in(), address(first))

    assert "Aborted by alice at step 1 of 3 (10 %): wrong labels" in page
    assert f'href="{address(second)}"' in page
    assert 'id="retry"' not in page
    assert "version 3" not in page.partition('id="events"')[2]


def test_one_service_does_not_show_the_rollout_of_another() -> None:
    row = scenes.rollout(scenes.service())
    scenes.service("ranker")

    assert signed_in().get(f"/services/default/ranker/rollouts/{row.pk}/").status_code == 404
    assert signed_in().get(f"/services/default/ranker/rollouts/{row.pk}/stream").status_code == 404


@pytest.mark.parametrize("part", ["", "stream"])
def test_who_has_no_role_where_the_service_is_finds_nothing(part: str) -> None:
    row, now = scenes.rollout(scenes.service()), timezone.now()
    scenes.token(Scope.ADMIN, "administrator")
    client = signed_in(Scope.READ)
    team_create(name="blue", actor="test", now=now)
    member_set(team="blue", username="read-user", role=Role.VIEWER, actor="test", now=now)
    member_delete(team="default", username="read-user", actor="test", now=now)

    assert client.get(address(row) + part).status_code == 404


@pytest.mark.parametrize(
    ("scope", "phase", "verbs"),
    [
        pytest.param(Scope.WRITE, Phase.PROGRESSING, {"abort"}, id="a writer can abort"),
        pytest.param(Scope.WRITE, Phase.PAUSED, {"promote", "abort"}, id="a writer can leave a pause"),
        pytest.param(Scope.WRITE, Phase.ABORTED, {"retry"}, id="a writer can begin again"),
        pytest.param(Scope.READ, Phase.PAUSED, set(), id="a reader can do nothing"),
    ],
)
def test_buttons_are_there_for_who_may_press_them(scope: Scope, phase: Phase, verbs: set[str]) -> None:
    row = scenes.rollout(scenes.service(), step_index=1, phase=phase)

    page = text(signed_in(scope), address(row))

    assert {verb for verb in ("promote", "abort", "retry") if f'id="{verb}"' in page} == verbs


def test_a_decision_keeps_its_reason_and_answers_with_the_head_of_the_page() -> None:
    row = paused()
    form = {"on": "rollout", "comment": "looked at 50 pictures"}

    answer = signed_in().post(f"/rollouts/{row.pk}/promote", form, headers={"HX-Request": "true"})

    assert answer.status_code == 200
    assert answer.content.decode().strip().startswith('<header class="rollout-title" id="rollout-header"')
    assert (
        Event.objects.filter(kind="RolloutCommented")
        .get()
        .message.endswith("promotes the rollout to digits-00002: looked at 50 pictures")
    )
    assert AuditEntry.objects.get(action="rollout.promote").detail["comment"] == "looked at 50 pictures"


def test_without_a_script_a_decision_leads_back_to_the_page() -> None:
    row = paused()
    assert signed_in().post(f"/rollouts/{row.pk}/abort", {"on": "rollout"})["Location"] == address(row)


def test_a_reason_that_is_too_long_changes_nothing() -> None:
    row = paused()
    answer = signed_in().post(f"/rollouts/{row.pk}/abort", {"comment": "x" * 1001})
    assert answer.status_code == 400
    assert Rollout.objects.get().phase == Phase.PAUSED


def test_the_number_of_queries_does_not_grow(
    django_assert_num_queries: DjangoAssertNumQueries, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client, row = signed_in(), scenes.rollout(scenes.service())
    with django_assert_max_num_queries(22) as shown:
        client.get(address(row))

    measuring.measure(row, looks=30, canary_errors=0.02)
    for step in (1, 2):
        scenes.move(row, step_index=step)
    scenes.rollout(scenes.service("ranker"))

    with django_assert_num_queries(len(shown)):
        client.get(address(row))
