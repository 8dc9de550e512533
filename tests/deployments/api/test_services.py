from collections.abc import Callable

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from deployments.services import service_apply
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
URL = "/api/v1/services/default/digits"


def _with_rollout(platform: Platform) -> None:
    """A live service with a rollout at its first step, 40 requests in."""
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.rollout().confirmed_at is not None)
    platform.traffic(400)
    platform.turn()


def test_put_makes_and_changes_a_service(platform: Platform, api: Api) -> None:
    platform.version(1)
    platform.version(2)
    client = api(Scope.WRITE)
    made = client.put(URL, platform.document(policy=None))
    assert made.status_code == 201
    body = made.json()
    assert (body["namespace"], body["name"], body["phase"], body["model"], body["model_version"]) == (
        "default",
        "digits",
        "Pending",
        "digits",
        1,
    )
    assert body["url"] == "http://127.0.0.1:8090/serving/default/digits/v2/models/digits"
    assert client.put(URL, platform.document(policy=None)).status_code == 200
    changed = client.put(URL, platform.document(uri="models:/digits/2", policy=None))
    assert (changed.status_code, changed.json()["model_version"]) == (200, 2)


def test_a_service_with_a_rollout_is_shown_whole(platform: Platform, api: Api) -> None:
    _with_rollout(platform)
    body = api(Scope.READ).get(URL).json()
    assert (body["phase"], body["policy"], body["stable_revision"]) == ("Progressing", "careful", "digits-00001")
    stable, canary = body["revisions"]
    assert {key: canary[key] for key in canary if key != "created_at"} == {
        "name": "digits-00002",
        "number": 2,
        "model": "digits",
        "model_version": 2,
        "image": "",
        "protocol": "",
        "pool": "",
        "pool_memory_bytes": None,
        "template_changes": "",
        "role": "canary",
        "replicas_wanted": 1,
        "replicas_ready": 1,
        "restarts": 0,
        "weight_wanted": 10,
        "weight_actual": 10,
        "mirror_wanted": 0,
        "mirror_actual": 0,
        "replicas_to_restart": 0,
        "replicas_least": 1,
        "replicas_most": 1,
        "scaling": "",
        "asleep_since": None,
        "asleep_hours": 0.0,
        "asleep_saved": None,
        "currency": "",
        "start_seconds": None,
        "message": "",
        "model_state": "Loaded",
        "is_failing": False,
        "last_failure": None,
        "placement": None,
        "egress": False,
    }
    assert (stable["role"], stable["weight_wanted"], stable["weight_actual"]) == ("stable", 90, 90)
    rollout = body["rollout"]
    assert (rollout["service"], rollout["from_version"], rollout["to_version"]) == ("default/digits", 1, 2)
    assert (rollout["phase"], rollout["step_index"], rollout["weight_wanted"], rollout["weight_actual"]) == (
        "Progressing",
        0,
        10,
        10,
    )
    assert (rollout["weight_seen_percent"], rollout["seen_requests"]) == (10.0, 400)
    assert rollout["steps"][1]["hold_seconds"] == 10.0
    assert rollout["reason"]["code"] == "AnalysisRunning"
    assert "0 of 40 requests to the canary failed" in rollout["reason"]["message"]
    [run] = rollout["analysis_runs"]
    assert (run["step_index"], run["weight_percent"], run["verdict"], run["seen_percent"]) == (0, 10, "Running", 10.0)
    assert run["requests"] == {"canary": 40, "stable": 360}
    assert [measurement["metric"] for measurement in run["measurements"]] == [
        "server_errors",
        "server_error_increase",
        "client_error_increase",
        "slow_requests",
    ]
    assert run["measurements"][0] == {
        "metric": "server_errors",
        "unit": "percent",
        "canary": 0.0,
        "stable": 0.0,
        "limit": 1.0,
        "verdict": "Running",
        "message": "0 of 40 requests to the canary failed (0.00 %, limit 1 %); a verdict needs 100 requests, "
        "at least 60 more requests",
        "more_requests": 60,
        "evidence_percent": 0.0,
        "low": 0.0,
        "high": 23.398,
    }


def test_the_number_of_queries_does_not_depend_on_how_much_there_is(
    platform: Platform, api: Api, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    _with_rollout(platform)
    client = api(Scope.READ)
    with django_assert_max_num_queries(9) as one:
        client.get("/api/v1/services")
    for index in range(5):
        document = platform.document()
        document["metadata"] = {"name": f"other-{index}"}
        service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    with django_assert_max_num_queries(len(one)):
        assert len(client.get("/api/v1/services").json()["results"]) == 6


def test_lists_are_pages(platform: Platform, api: Api) -> None:
    _with_rollout(platform)
    client = api(Scope.READ)
    first = client.get(f"{URL}/events?limit=2").json()
    assert len(first["results"]) == 2
    second = client.get(first["next"]).json()
    numbers = [event["seq"] for event in first["results"] + second["results"]]
    assert numbers == sorted(numbers, reverse=True)
    assert len(set(numbers)) == 4
    [newest, _] = first["results"]
    assert set(newest) == {"seq", "at", "kind", "message", "revision", "rollout", "request_id"}
    revisions = client.get(f"{URL}/revisions").json()["results"]
    assert [revision["name"] for revision in revisions] == ["digits-00002", "digits-00001"]
    assert [revision["weight_wanted"] for revision in revisions] == [10, 90]
    rollouts = client.get(f"{URL}/rollouts").json()["results"]
    assert [rollout["to_version"] for rollout in rollouts] == [2]
    assert rollouts[0] == client.get(f"/api/v1/rollouts/{rollouts[0]['id']}").json()


@pytest.mark.parametrize("path", ["", "/events", "/revisions", "/rollouts"])
def test_an_unknown_service(db: None, api: Api, path: str) -> None:
    answer = api(Scope.READ).get(f"/api/v1/services/default/nothing{path}")
    assert answer.status_code == 404
    assert answer.json()["error"]["message"] == "there is no service default/nothing"


def test_delete_answers_with_the_service_that_goes(platform: Platform, api: Api) -> None:
    platform.live()
    answer = api(Scope.WRITE).delete(URL)
    assert (answer.status_code, answer.json()["phase"]) == (202, "Deleting")


def test_a_wrong_file_is_refused_by_its_dotted_field(db: None, api: Api, platform: Platform) -> None:
    document = platform.document()
    document["spec"]["predictor"]["model"]["protocolVersion"] = "v2"
    answer = api(Scope.WRITE).put(URL, document)
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "spec.predictor.model.protocolVersion"


def test_reading_needs_read_and_changing_needs_write(platform: Platform, api: Api) -> None:
    _with_rollout(platform)
    assert APIClient().get(URL).status_code == 401
    reader = api(Scope.READ)
    assert reader.get(URL).status_code == 200
    refused = [
        reader.put(URL, platform.document()),
        reader.delete(URL),
        reader.post(f"{URL}/rollouts", {"version": "2"}),
    ]
    rollout = platform.rollout().pk
    refused += [reader.post(f"/api/v1/rollouts/{rollout}/{verb}") for verb in ("promote", "abort", "retry")]
    assert {answer.status_code for answer in refused} == {403}


def test_a_dry_run_says_what_would_happen_and_changes_nothing(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    client = api(Scope.WRITE)
    asked = f"{URL}?dry_run=true"
    before = (client.get(URL).json(), client.get(f"{URL}/events").json())
    newer = platform.document(uri="models:/digits/2")

    same = client.put(asked, platform.document()).json()
    plan = client.put(asked, newer)

    assert same["outcome"] == "unchanged"
    assert (plan.status_code, plan.json()) == (
        200,
        {
            "outcome": "changed",
            "message": "new revision digits-00002 of digits version 2; rollout by policy careful",
            "before": platform.document(),
            "after": newer,
            "contract": {"breaks": [], "notes": [], "unknown": "", "accepted_by": "", "accepted_because": ""},
            "analysis": None,
            "room": None,
            "patched": "",
            "untried": "",
            "warnings": [],
        },
    )
    assert (client.get(URL).json(), client.get(f"{URL}/events").json()) == before


@pytest.mark.parametrize(
    ("query", "uri", "status"),
    [
        pytest.param("true", "models:/digits/9", 404, id="a version that is not there"),
        pytest.param("true", "digits", 400, id="a wrong address of a model"),
        pytest.param("maybe", "models:/digits/1", 400, id="neither true nor false"),
        pytest.param("true", "models:/digits/1", 200, id="what could be made"),
    ],
)
def test_a_dry_run_refuses_what_would_be_refused(
    platform: Platform, api: Api, query: str, uri: str, status: int
) -> None:
    platform.version(1)
    client = api(Scope.WRITE)
    assert client.put(f"{URL}?dry_run={query}", platform.document(uri=uri, policy=None)).status_code == status
    assert client.get(URL).status_code == 404


def test_a_dry_run_of_a_policy_changes_nothing(platform: Platform, api: Api) -> None:
    client, where = api(Scope.ADMIN), "/api/v1/policies/swift"
    file = {"name": "swift", "steps": [{"weight": 50}]}
    assert client.put(f"{where}?dry_run=true", file).json()["outcome"] == "created"
    assert client.get(where).status_code == 404
    client.put(where, file)
    assert client.put(f"{where}?dry_run=true", file).json()["outcome"] == "unchanged"
    plan = client.put(f"{where}?dry_run=true", {"name": "swift", "steps": [{"weight": 20}]}).json()
    assert (plan["outcome"], plan["before"]["steps"][0]["weight"], plan["after"]["steps"][0]["weight"]) == (
        "changed",
        50,
        20,
    )
    assert client.get(where).json()["version"] == 1


def test_a_restart_counts_down_the_replicas_that_are_left(platform: Platform, api: Api) -> None:
    platform.live(replicas=2)
    answer = api(Scope.WRITE).post(f"{URL}/restart")
    assert (answer.status_code, answer.json()["revisions"][0]["replicas_to_restart"]) == (202, 2)
    platform.turn()
    assert (
        platform.view().reason == "digits-00001 serves all traffic with 2 replicas; 2 of them are yet to be restarted"
    )
    platform.turn()
    assert platform.view().revisions[0].replicas_to_restart == 0
    assert platform.view().reason == "digits-00001 serves all traffic with 2 replicas"


def test_what_is_not_there_or_goes_is_not_restarted(platform: Platform, api: Api) -> None:
    client = api(Scope.WRITE)
    assert client.post(f"{URL}/restart").status_code == 404
    platform.live()
    client.delete(URL)
    refused = client.post(f"{URL}/restart")
    assert (refused.status_code, "is being deleted" in refused.json()["error"]["message"]) == (409, True)


@pytest.mark.parametrize("query", [pytest.param("", id="applied"), pytest.param("?dry_run=true", id="dry run")])
@pytest.mark.parametrize(
    ("config", "field", "sentence"),
    [
        pytest.param({"max_batch": 8}, "max_batch", 'has no field named "max_batch"', id="an unknown field"),
        pytest.param({"max_batch_size": "x"}, "max_batch_size", "couldn't parse integer", id="a wrong type"),
        pytest.param(
            {"instance_group": [{"host_policy": "p"}]},
            "instance_group.host_policy",
            "this runtime does not support it",
            id="a field that is not honoured",
        ),
    ],
)
def test_a_mistake_in_the_config_is_refused_at_once_by_its_field(
    platform: Platform, api: Api, query: str, config: dict[str, object], field: str, sentence: str
) -> None:
    platform.version(1)
    client = api(Scope.WRITE)
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["config"] = config
    refused = client.put(f"{URL}{query}", document)
    error = refused.json()["error"]
    assert (refused.status_code, error["field"]) == (400, f"spec.predictor.model.config.{field}")
    assert error["message"].startswith(f"spec.predictor.model.config.{field}: ")
    assert sentence in error["message"]
    assert client.get(URL).status_code == 404


def test_a_config_that_the_runtime_takes_is_applied(platform: Platform, api: Api) -> None:
    platform.version(1)
    document = platform.document(policy=None)
    document["spec"]["predictor"]["model"]["config"] = {"max_batch_size": 8}
    assert api(Scope.WRITE).put(URL, document).status_code == 201
