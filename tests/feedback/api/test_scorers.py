from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from accounts.models import AuditEntry
from feedback.models import ServiceScorer
from tests import scenes
from tests.feedback._support.rows import keep

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/feedback/scorers"


def test_make_show_change_delete(api: Api) -> None:
    scenes.service()
    caller = api(Scope.WRITE)
    made = caller.put(f"{URL}/far", {"kind": "absoluteError", "options": {"bound": 10}})
    assert made.status_code == 200, made.json()
    shown = made.json()
    assert (shown["name"], shown["kind"], shown["options"]) == ("far", "absoluteError", {"bound": 10})
    assert shown["unit"] == {"name": "absolute error", "scale": 10}
    assert (shown["backfilling"], shown["unscored"], shown["unscored_reason"]) == (False, 0, "")
    assert caller.put(f"{URL}/far", {"kind": "absoluteError", "options": {"bound": 10}}).json() == shown
    assert caller.put(f"{URL}/right", {"kind": "accuracy"}).json()["options"] == {}
    listed = api(Scope.READ).get(URL).json()["results"]
    assert [each["name"] for each in listed] == ["far", "right"]
    assert caller.put(f"{URL}/far", {"kind": "brier"}).status_code == 409
    assert caller.put(f"{URL}/far", {"kind": "reward", "options": {"low": 0, "high": 2}}).status_code == 200
    assert caller.delete(f"{URL}/far").status_code == 204
    assert caller.delete(f"{URL}/far").status_code == 404
    entries = AuditEntry.objects.filter(action__startswith="scorer.").order_by("id")
    assert [entry.action for entry in entries] == ["scorer.set", "scorer.set", "scorer.set", "scorer.delete"]
    assert entries[2].before == {"kind": "absoluteError", "options": {"bound": 10}}


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        pytest.param("Far", {"kind": "accuracy"}, "name", id="name"),
        pytest.param("far", {}, "kind", id="no kind"),
        pytest.param("far", {"kind": "precision"}, "kind", id="no such kind"),
        pytest.param("far", {"kind": "accuracy", "bound": 1}, "bound", id="misspelt"),
        pytest.param("far", {"kind": "logLoss"}, "options.bound", id="no bound"),
        pytest.param("far", {"kind": "logLoss", "options": []}, "options", id="no options"),
    ],
)
def test_what_is_no_scorer_is_refused_by_its_field(api: Api, name: str, body: dict[str, object], field: str) -> None:
    scenes.service()
    answered = api(Scope.WRITE).put(f"{URL}/{name}", body)
    assert answered.status_code == 400
    assert answered.json()["error"]["field"] == field


def test_probabilities_are_read_only_from_an_output_whose_values_are_kept(api: Api) -> None:
    kept = keep(scenes.service(), output="label", outputs=["other"])
    caller = api(Scope.WRITE)
    refused = caller.put(f"{URL}/top", {"kind": "topK", "options": {"k": 2}})
    assert refused.status_code == 400
    assert "values of the output 'label'" in refused.json()["error"]["message"]
    named = {"kind": "topK", "options": {"k": 2, "output": "other"}}
    assert caller.put(f"{URL}/top", named).status_code == 200
    kept.outputs = []
    kept.save()
    assert "of no output" in caller.put(f"{URL}/top", {"kind": "brier"}).json()["error"]["message"]


def test_a_service_has_so_many_scorers_at_most(api: Api) -> None:
    scenes.service()
    caller = api(Scope.WRITE)
    for number in range(20):
        assert caller.put(f"{URL}/s{number}", {"kind": "accuracy"}).status_code == 200
    refused = caller.put(f"{URL}/more", {"kind": "accuracy"})
    assert refused.status_code == 409
    assert "has 20 scorers" in refused.json()["error"]["message"]
    assert ServiceScorer.objects.count() == 20


def test_readers_change_none(api: Api) -> None:
    scenes.service()
    assert api(Scope.READ).put(f"{URL}/right", {"kind": "accuracy"}).status_code == 403
    assert api(Scope.READ).delete(f"{URL}/right").status_code == 403
