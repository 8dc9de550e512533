import json
from typing import Any

import pytest
from django.test import Client

from accounts.domain.scopes import Scope
from tests import comparisons, scenes

pytestmark = pytest.mark.django_db


def asked(rollout_id: int) -> Any:
    headers = {"Authorization": f"Bearer {scenes.token(Scope.READ)}"}
    response = Client().get(f"/api/v1/rollouts/{rollout_id}/comparison", headers=headers)
    assert response.status_code == 200, response.content
    return response.json()


def test_a_comparison_tells_agreement_distributions_and_the_worst_requests() -> None:
    rollout = comparisons.compared_shadow(scenes.service())
    [step] = asked(rollout.pk)["steps"]
    assert (step["pairs"], step["differing"], step["step_index"]) == (300, 10, 0)
    assert step["agreement_percent"] == pytest.approx(100 * 290 / 300)
    assert step["low_percent"] < step["agreement_percent"] < step["high_percent"]
    assert step["outcomes"] == {"Agrees": 290, "Differs": 9, "ShadowFailed": 1}
    [output] = step["outputs"]
    assert output["kinds"]["NotFinite"] == 1
    assert (output["rankings"], output["flips"]) == (299, 9)
    assert output["absolute"]["sizeless"] == 1
    assert output["absolute"]["largest"] == pytest.approx(0.5, abs=1e-6)
    worst = step["worst"]
    assert {worst[0]["request_id"], worst[1]["request_id"]} == {"r50", "r60"}
    assert worst[0]["shadow"]["scores"]["values"][1] == "nan"
    assert worst[1]["shadow"] == {"error": "the model ran out of memory"}
    assert worst[1]["inputs"]["image"]["values"] == [60.0, 0.5]
    assert step["measurement"]["verdict"] == "Running"
    json.dumps(step, allow_nan=False)


def test_a_rollout_that_compares_nothing_has_no_steps() -> None:
    rollout = scenes.rollout(scenes.service())
    assert asked(rollout.pk) == {"rollout": rollout.pk, "steps": []}


def test_a_retry_begins_anew() -> None:
    rollout = comparisons.compared_shadow(scenes.service())
    rollout.attempt = 2
    rollout.save(update_fields=["attempt"])
    assert asked(rollout.pk)["steps"] == []


def test_the_number_of_queries_does_not_grow_with_what_was_compared(django_assert_num_queries: Any) -> None:
    rollout = comparisons.compared_shadow(scenes.service(), count=5)
    headers = {"Authorization": f"Bearer {scenes.token(Scope.READ)}"}
    client = Client()
    client.get(f"/api/v1/rollouts/{rollout.pk}/comparison", headers=headers)
    with django_assert_num_queries(5):
        client.get(f"/api/v1/rollouts/{rollout.pk}/comparison", headers=headers)
