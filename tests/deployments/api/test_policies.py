from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from tests.deployments._support.platform import POLICY, Platform

Api = Callable[..., APIClient]


def test_put_show_list_delete(db: None, api: Api) -> None:
    client = api(Scope.WRITE)
    made = client.put("/api/v1/policies/careful", POLICY)
    assert made.status_code == 201
    body = made.json()
    assert (body["name"], body["strategy"], body["onInconclusive"], body["version"]) == (
        "careful",
        "canary",
        "pause",
        1,
    )
    assert (body["scaleDownDelay"], body["progressDeadline"]) == ("30s", "2m")
    assert body["steps"][0] == {
        "weight": 10,
        "hold": "10s",
        "pause": False,
        "analysis": {
            "minRequests": 100,
            "maxErrorPercent": 1.0,
            "maxErrorIncreasePercent": 1.0,
            "latencyQuantile": 0.95,
            "maxSlowPercent": 15.0,
            "deadline": "5m",
            "detect": {"errorPercent": 5.0, "slowPercent": 30.0},
        },
    }
    assert client.put("/api/v1/policies/careful", POLICY).status_code == 200
    assert client.get("/api/v1/policies/careful").json() == body
    assert client.get("/api/v1/policies").json() == {"next": None, "results": [body]}
    assert client.delete("/api/v1/policies/careful").status_code == 204
    assert client.get("/api/v1/policies/careful").status_code == 404


def test_a_wrong_file_is_refused_by_its_field(db: None, api: Api) -> None:
    answer = api(Scope.WRITE).put("/api/v1/policies/careful", {**POLICY, "steps": [{"weight": 20}, {"weight": 10}]})
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["field"]) == ("invalid_input", "steps[1].weight")
    assert error["message"] == "steps[1].weight is 10 after 20; weights must rise from step to step"


@pytest.mark.parametrize("body", [[POLICY], "canary", 7, None])
def test_a_body_that_is_no_file_is_refused(db: None, api: Api, body: object) -> None:
    answer = api(Scope.WRITE).put("/api/v1/policies/careful", body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_input")


def test_a_policy_in_use_is_not_deleted(platform: Platform, api: Api) -> None:
    platform.live()
    answer = api(Scope.WRITE).delete("/api/v1/policies/careful")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "conflict")


def test_reading_needs_read_and_changing_needs_write(db: None, api: Api) -> None:
    assert APIClient().get("/api/v1/policies").status_code == 401
    reader = api(Scope.READ)
    assert reader.get("/api/v1/policies").status_code == 200
    assert reader.put("/api/v1/policies/careful", POLICY).status_code == 403
    assert reader.delete("/api/v1/policies/careful").status_code == 403


def test_a_file_with_several_faults_is_refused_with_a_sentence_for_each(db: None, api: Api) -> None:
    file = {**POLICY, "steps": [{"weight": 200, "hold": "soon"}], "alpah": 0.01}
    answer = api(Scope.WRITE).put("/api/v1/policies/careful", file)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["code"], error["field"], len(error["details"])) == ("invalid_input", "steps[0].hold", 3)
    assert error["message"] == f"the policy file has 3 faults; the first: {error['details'][0]}"
    assert error["details"][2].endswith("did you mean alpha?")
