from collections.abc import Callable

import pytest
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from common.errors import InvalidInput
from deployments.api import views
from deployments.models import Rollout
from integrations.clusters.base import Desired
from tests.deployments._support.platform import SIGNATURE, Platform

Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits/rollouts"


def test_start_promote_abort_retry(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="asking", steps=[{"weight": 10, "pause": True}])
    client = api(Scope.WRITE)
    started = client.post(URL, {"version": "2", "policy": "asking"})
    assert started.status_code == 201
    rollout = started.json()
    assert (rollout["phase"], rollout["policy"], rollout["created_by"]) == (
        "Pending",
        "asking",
        "alice (token alice-write)",
    )
    platform.until(lambda: platform.rollout().phase == "Paused")
    one = f"/api/v1/rollouts/{rollout['id']}"
    assert client.post(f"{one}/promote").json()["phase"] == "Progressing"
    assert client.post(f"{one}/abort").json()["reason"]["code"] == "Aborted"
    retried = client.post(f"{one}/retry").json()
    assert (retried["phase"], retried["attempt"]) == ("Pending", 2)
    assert client.get(one).json() == retried


def test_a_policy_of_null_is_the_services_own(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    assert api(Scope.WRITE).post(URL, {"version": "2", "policy": None}).json()["policy"] == "careful"


def test_a_rollout_of_which_the_cluster_cannot_do_a_step_is_refused_before_it_starts(
    platform: Platform, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.live()
    platform.version(2)
    group = [{"header": "x-client", "prefix": "app/2."}]
    platform.policy(name="group-later", steps=[{"mirror": 10, "hold": "1s"}, {"match": group}, {"weight": 50}])
    platform.cluster.on_check = _refuse_a_group
    monkeypatch.setattr(views, "driver_of", lambda _cluster: platform.cluster)
    for query in ("?dry_run=true", ""):
        answer = api(Scope.WRITE).post(f"{URL}{query}", {"version": "2", "policy": "group-later"})
        error = answer.json()["error"]
        assert (answer.status_code, error["field"]) == (400, "match"), error
        assert error["message"] == "digits-00002: no group can be told apart; roll out by weights"
    assert not Rollout.objects.filter(policy_name="group-later").exists()
    assert api(Scope.WRITE).post(URL, {"version": "2", "policy": "careful"}).status_code == 201


def test_a_cluster_that_cannot_be_asked_keeps_nobody_from_starting(
    platform: Platform, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.live()
    platform.version(2)
    platform.cluster.away = "the API server does not answer"
    monkeypatch.setattr(views, "driver_of", lambda _cluster: platform.cluster)
    assert api(Scope.WRITE).post(URL, {"version": "2"}).status_code == 201


def _refuse_a_group(desired: Desired) -> None:
    for revision in desired.revisions:
        if revision.match:
            raise InvalidInput(f"{revision.name}: no group can be told apart; roll out by weights", field="match")


@pytest.mark.parametrize(
    ("asked", "status", "code", "field"),
    [
        pytest.param({}, 400, "invalid_input", "version", id="no version"),
        pytest.param({"version": "2", "policy": "bold"}, 404, "not_found", "policy", id="unknown policy"),
        pytest.param({"version": "2", "polizy": "careful"}, 400, "invalid_input", "polizy", id="misspelt field"),
        pytest.param({"version": "9"}, 404, "not_found", None, id="unknown version"),
        pytest.param({"version": "1"}, 409, "conflict", None, id="live already"),
    ],
)
def test_a_rollout_that_cannot_be_is_refused(
    platform: Platform, api: Api, asked: dict[str, str], status: int, code: str, field: str | None
) -> None:
    platform.live()
    platform.version(2)
    answer = api(Scope.WRITE).post(URL, asked)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["field"]) == (status, code, field)


def test_a_transition_that_is_not_possible_is_a_conflict_with_its_own_code(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    answer = api(Scope.WRITE).post(f"/api/v1/rollouts/{rollout.pk}/promote")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "invalid_transition")
    assert answer.json()["error"]["message"].startswith("only a paused rollout can be promoted; this one is Pending: ")


def test_an_unknown_rollout(db: None, api: Api) -> None:
    assert api(Scope.READ).get("/api/v1/rollouts/7").status_code == 404
    assert api(Scope.WRITE).post("/api/v1/rollouts/7/abort").status_code == 404


def test_rollback_by_name_and_without(platform: Platform, api: Api) -> None:
    platform.live()
    platform.promoted()
    client = api(Scope.WRITE)
    url = "/api/v1/services/default/digits/rollback"
    assert api(Scope.READ).post(url).status_code == 403
    answer = client.post(url, {"revision": "digits-00001"})
    assert answer.status_code == 201
    assert (answer.json()["from_revision"], answer.json()["to_revision"]) == ("digits-00002", "digits-00001")
    assert (answer.json()["policy"], answer.json()["steps"]) == (None, [])
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert client.post(url).json()["to_revision"] == "digits-00002"


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        pytest.param({"revision": "digits-00009"}, 404, "not_found", id="unknown"),
        pytest.param({"revision": "digits-00001"}, 409, "conflict", id="live"),
        pytest.param({}, 409, "conflict", id="none before"),
        pytest.param({"revison": "digits-00001"}, 400, "invalid_input", id="a field that is not there"),
    ],
)
def test_a_rollback_that_cannot_be_is_refused(
    platform: Platform, api: Api, asked: dict[str, str], status: int, code: str
) -> None:
    platform.live()
    answer = api(Scope.WRITE).post("/api/v1/services/default/digits/rollback", asked)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


BROKEN = {**SIGNATURE, "outputs": []}
LIST = ["output 'label' is not given any more"]
FORCED = {"version": "2", "accept_contract_changes": True, "reason": "nobody reads labels"}


def test_what_would_break_clients_is_a_conflict_with_the_list(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2, signature=BROKEN)
    for query in ("", "?dry_run=true"):
        answer = api(Scope.WRITE).post(URL + query, {"version": "2"})
        error = answer.json()["error"]
        assert (answer.status_code, error["code"], error["details"]) == (409, "contract_broken", LIST)


def test_only_an_admin_lets_clients_break(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2, signature=BROKEN)
    refused = api(Scope.WRITE).post(URL, FORCED)
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_permitted")
    started = api(Scope.ADMIN).post(URL, FORCED)
    assert started.status_code == 201
    assert started.json()["contract"] == {
        "breaks": LIST,
        "notes": [],
        "unknown": "",
        "accepted_by": "alice (token alice-admin)",
        "accepted_because": "nobody reads labels",
    }


def test_an_admin_lets_clients_break_by_a_file_too(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2, signature=BROKEN)
    where, document = URL.removesuffix("/rollouts"), platform.document(uri="models:/digits/2")
    asked = f"{where}?accept_contract_changes=true&reason=nobody%20reads%20labels"
    assert api(Scope.WRITE).put(asked, document).status_code == 403
    assert api(Scope.ADMIN).put(where, document).status_code == 409
    plan = api(Scope.ADMIN).put(f"{asked}&dry_run=true", document).json()
    assert (plan["outcome"], plan["contract"]["breaks"]) == ("changed", LIST)
    assert api(Scope.ADMIN).put(asked, document).json()["rollout"]["contract"]["breaks"] == LIST


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"accept_contract_changes": True}, "reason", id="no reason"),
        pytest.param({"accept_contract_changes": True, "reason": " "}, "reason", id="an empty reason"),
        pytest.param({"reason": "because"}, "reason", id="a reason for nothing"),
    ],
)
def test_a_wish_to_break_clients_has_a_reason(
    platform: Platform, api: Api, asked: dict[str, object], field: str
) -> None:
    platform.live()
    platform.version(2)
    answer = api(Scope.ADMIN).post(URL, {"version": "2", **asked})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, field)


def test_a_dry_run_says_what_would_happen_and_starts_nothing(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    answer = api(Scope.WRITE).post(f"{URL}?dry_run=true", {"version": "2"})
    assert answer.status_code == 200
    assert answer.json()["message"] == "new revision digits-00002 of digits version 2; rollout by policy careful"
    assert [said[:28] for said in answer.json()["warnings"]] == ["no step compares answers: a "]
    assert api(Scope.READ).get(URL).json()["results"] == []


def test_a_dry_run_plans_what_the_analysis_could_find(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    plan = api(Scope.WRITE).post(f"{URL}?dry_run=true", {"version": "2"}).json()["analysis"]
    assert plan["alpha"] == 0.01
    assert [(step["weight_percent"], step["min_requests"]) for step in plan["steps"]] == [(10, 100), (50, 100)]
    [found] = [each for each in plan["steps"][0]["detections"] if each["metric"] == "server_errors"]
    assert found["regression_percent"] == 5
    assert 200 < found["requests"] < 800
    assert "3.7 % of such canaries are seen within the limit" in plan["steps"][0]["warnings"][0]
    assert plan["traffic"].startswith("how many requests clients send is not known")
