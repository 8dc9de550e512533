"""The pages of rollout policies, on the real database and services."""

import html
import re

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from common.files.editor.text import digest_of
from deployments.models import RolloutPolicy
from deployments.services import policy_apply
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import signed_in, text

pytestmark = pytest.mark.django_db
FILE = "name: slow\nsteps:\n- weight: 10\n  hold: 1m\n"


def apply(**what: str) -> tuple[int, str]:
    answer = signed_in(Scope.WRITE).post("/policies/apply", {"policy": "", "version": "", "text": FILE, **what})
    return answer.status_code, answer.content.decode()


def test_saving_makes_what_the_api_makes() -> None:
    assert apply()[0] == 302
    row = RolloutPolicy.objects.get()
    assert row.document["steps"][0]["weight"] == 10
    assert AuditEntry.objects.filter(action="policy.apply", target="policies/slow").count() == 1


def test_a_text_that_is_no_policy_comes_back_with_its_line_and_nothing_is_saved() -> None:
    status, page = apply(text=FILE + "- weight: 5\n  hold: soon\n")
    assert status == 400
    assert "Line 6:" in page
    assert "hold: soon" in page
    assert not RolloutPolicy.objects.exists()


def test_nobodys_change_is_lost() -> None:
    apply()
    assert apply()[0] == 409  # a new one of that name
    assert apply(policy="slow", version="1", text=FILE + "- weight: 20\n")[0] == 302
    status, page = apply(policy="slow", version="1", text=FILE + "- weight: 30\n")
    assert status == 409
    assert "was changed or deleted since you opened it" in page
    assert RolloutPolicy.objects.get().version == 2


def test_a_policy_keeps_its_name() -> None:
    apply()
    status, page = apply(policy="slow", version="1", text=FILE.replace("slow", "fast"))
    assert status == 400
    assert "give both the same name" in page


def test_looking_changes_nothing_and_needs_no_right_to_write() -> None:
    answer = signed_in(Scope.READ).post("/policies/look", {"text": FILE}, headers={"HX-Request": "true"})
    page = answer.content.decode()
    assert "Takes 1m" in page
    assert "policy slow is new" in page.lower()
    assert not RolloutPolicy.objects.exists()
    assert not AuditEntry.objects.filter(action="policy.apply").exists()


def test_who_may_not_write_sees_no_way_to_and_is_refused() -> None:
    policy_apply(document=scenes.POLICY, name=None, actor="test", now=timezone.now())
    client = signed_in(Scope.READ)
    page = text(client, "/policies/careful/")
    assert "Save policy" not in page
    assert "Delete policy" not in page
    assert "New policy" not in text(client, "/policies/")
    assert client.post("/policies/apply", {"text": FILE}).status_code == 403
    assert client.post("/policies/careful/delete").status_code == 403
    assert RolloutPolicy.objects.count() == 1


def test_a_policy_that_a_service_names_is_not_deleted() -> None:
    scenes.service()
    page = text(signed_in(), "/policies/careful/")
    assert "named by default/digits" in page
    assert signed_in(Scope.WRITE).post("/policies/careful/delete").status_code == 409


def test_the_list_asks_as_often_for_many_as_for_one(django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    for number in range(12):
        document = {"name": f"p{number}", "steps": [{"weight": 10}]}
        policy_apply(document=document, name=None, actor="test", now=timezone.now())
    client = signed_in()
    with django_assert_max_num_queries(6):
        page = text(client, "/policies/")
    assert len(re.findall(r"/policies/p\d+/", page)) == 12


def fill(**said: str) -> str:
    """Return what htmx gets for a change of the form."""
    asked = {"policy": "", "text": FILE, "seen": digest_of(FILE), **said}
    answer = signed_in(Scope.READ).post("/policies/fill", asked, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return html.unescape(answer.content.decode())


def test_the_form_is_beside_the_file_and_says_the_same() -> None:
    policy_apply(document=scenes.POLICY, name=None, actor="test", now=timezone.now())
    page = text(signed_in(Scope.WRITE), "/policies/careful/")
    assert 'name="steps.1.weight" value="25"' in page
    assert 'name="steps.0.analysis.minRequests" value="100"' in page
    assert "<code>detect</code>" in page, "what no field says is named"


def test_a_field_is_written_into_the_file_which_is_drawn() -> None:
    answer = fill(**{"steps.0.hold": "2m"})
    assert "Takes 2m" in answer
    assert "hold: 2m" in answer.partition('id="policy-text"')[2]
    assert 'id="policy-form"' not in answer, "who types in it keeps the form"
    assert f'value="{digest_of(FILE.replace("1m", "2m"))}"' in answer
    assert "Line 3:" in fill(**{"steps.0.weight": "101"})


def test_what_makes_other_fields_brings_the_form_anew() -> None:
    assert 'id="at-steps.0.analysis.minRequests"' in fill(**{"steps.0.analysis": "yes"})
    assert 'id="at-steps.1.weight"' in fill(do="add")


def test_a_form_that_was_filled_in_from_another_text_changes_nothing() -> None:
    answer = fill(seen=digest_of("name: other\nsteps: []\n"), **{"steps.0.hold": "2m"})
    assert "Takes 1m" in answer
    assert 'name="steps.0.hold" value="1m"' in answer
    assert 'id="policy-text"' not in answer


def test_a_text_that_is_no_yaml_is_left_alone_and_has_no_form() -> None:
    answer = fill(text="name: [", seen=digest_of("name: ["), **{"steps.0.hold": "2m"})
    assert "Line 1" in answer
    assert marked(answer, "form-follows")
    assert 'id="policy-text"' not in answer


def test_what_was_typed_last_in_the_form_is_saved_too() -> None:
    assert apply(seen=digest_of(FILE), **{"steps.0.weight": "30"})[0] == 302
    assert RolloutPolicy.objects.get().document["steps"][0]["weight"] == 30
    changed = FILE.replace("10", "20")
    assert apply(policy="slow", version="1", text=changed, seen=digest_of(FILE), **{"steps.0.weight": "30"})[0] == 302
    assert RolloutPolicy.objects.get().document["steps"][0]["weight"] == 20, "the text was changed after the form"


def test_without_a_script_the_form_is_written_into_the_file_by_a_button() -> None:
    asked = {"policy": "", "version": "", "text": FILE, "seen": digest_of(FILE), "steps.0.hold": "3m"}
    page = signed_in(Scope.WRITE).post("/policies/fill", asked).content.decode()
    assert "hold: 3m" in page
    assert "Save policy" in page


def test_a_policy_that_compares_no_answers_is_warned_about() -> None:
    shadow = "name: s\nstrategy: shadow\nsteps:\n- weight: 10\n  analysis: {comparison: {minPairs: 5}}\n"
    for asked, is_warned in ((FILE, True), (shadow, False)):
        answer = fill(text=asked, seen=digest_of(asked))
        assert bool(marked(answer, "policy-warning")) is is_warned


def test_all_faults_of_a_text_are_shown() -> None:
    status, page = apply(text=FILE + "- weight: 5\n  hold: soon\nalpah: 1\n")
    assert status == 400
    assert "The policy file has 2 faults; the first: steps[1].hold" in page
    [further] = marked(page, "further-faults")
    assert further.startswith("alpah is not a field")
    assert further.endswith("did you mean alpha?")
