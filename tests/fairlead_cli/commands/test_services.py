"""`fairlead services`, `policies` and `events`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead_cli.commands.refusals import Refusals
from fairlead_cli.errors import EndedBadly

Fairlead = Callable[..., tuple[int, str, str]]

SERVICE: dict[str, Any] = {
    "namespace": "default",
    "name": "digits",
    "url": "http://127.0.0.1:8090/serving/default/digits/v2/models/digits",
    "phase": "Ready",
    "reason": "serves",
    "model": "digits",
    "model_version": "1",
    "policy": "careful",
    "revisions": [
        {
            "name": "digits-00001",
            "model_version": "1",
            "role": "stable",
            "replicas_wanted": 2,
            "replicas_ready": 1,
            "restarts": 0,
            "weight_wanted": 100,
            "weight_actual": 100,
        }
    ],
    "rollout": None,
    "file": {"is_live": True, "message": ""},
    "created_at": "2026-01-01",
}


UNCHANGED = {"outcome": "unchanged", "message": "as its file says", "before": {}, "after": {}}


def applies(api: Any, where: str, document: Any, status: int = 200, plan: Any = UNCHANGED) -> None:
    """Let the control plane take a file, and answer what it would do with it."""
    api.on(f"{where}?dry_run=true", plan)
    api.on(where, document, status=status)


def rollout(phase: str, message: str = "it goes on") -> dict[str, Any]:
    return {
        "id": 7,
        "service": "default/digits",
        "from_version": 1,
        "to_version": 2,
        "phase": phase,
        "step_index": 0,
        "weight_wanted": 10,
        "weight_actual": 10,
        "reason": {"code": "x", "message": message},
    }


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        pytest.param("{name: digits}", "PUT /services/default/digits", id="the namespace is `default`"),
        pytest.param("{name: digits, namespace: team}", "PUT /services/team/digits", id="its namespace"),
    ],
)
def test_apply_sends_the_file(fairlead: Fairlead, api: Any, at_home: Path, metadata: str, where: str) -> None:
    (at_home / "service.yaml").write_text(f"kind: InferenceService\nmetadata: {metadata}\n")
    applies(api, where, SERVICE)

    code, said, _ = fairlead("services", "apply", "-f", "service.yaml")

    assert (code, "Ready" in said) == (0, True)
    assert api.seen[0].document["kind"] == "InferenceService"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        pytest.param("a: [", "f.yaml is neither YAML nor JSON: ", id="no YAML"),
        pytest.param("- a\n", "f.yaml holds no object; expected the named fields", id="a list"),
        pytest.param("", "f.yaml is empty; expected a service", id="nothing"),
        pytest.param("metadata: {name: a/../b}\n", "'a/../b' can be no name; expected letters", id="a path as a name"),
        pytest.param("kind: X\n", "f.yaml names no service; expected a field `metadata.name`", id="no name"),
        pytest.param(
            "metadata: {name: 3}\n", "f.yaml names no service; expected a field `metadata.name`", id="no text"
        ),
    ],
)
def test_apply_of_a_bad_file_is_refused_here(
    fairlead: Fairlead, api: Any, at_home: Path, text: str, complaint: str
) -> None:
    (at_home / "f.yaml").write_text(text)

    code, _, complained = fairlead("services", "apply", "-f", "f.yaml")

    assert code == 1
    assert complained.startswith(complaint)
    assert (complained.count("\n"), api.seen) == (1, [])


def test_apply_waits_until_a_new_service_is_ready(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    pending = {**SERVICE, "phase": "Pending", "reason": "0 of 2 replicas are ready"}
    applies(api, "PUT /services/default/digits", pending, status=201)
    api.on("GET /services/default/digits", pending, SERVICE)

    code, said, told = fairlead("services", "apply", "-f", "service.yaml", "--wait")

    assert (code, "Ready" in said) == (0, True)
    assert (
        told
        == "services/default/digits: unchanged, as its file says\nPending: 0 of 2 replicas are ready\nReady: serves\n"
    )


def refused(**failure: Any) -> dict[str, Any]:
    """Return a service whose first revision fails."""
    found = {"reason": "ModelLoadFailed", "message": "no file model.onnx", "at": "2026-01-01", "replica": "digits-0"}
    found |= {"container": "", "exit_code": None, "events": [], "log": [], "is_final": False}
    own = {"replicas_ready": 0, "is_failing": True, "last_failure": found | failure}
    first = SERVICE["revisions"][0] | own | {"restarts": failure.get("restarts", 0)}
    return {**SERVICE, "phase": "Pending", "reason": "0 of 2 replicas are ready", "revisions": [first]}


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param({"is_final": True}, id="refused for good"),
        pytest.param({"restarts": 6}, id="three failed loads of each of two replicas"),
    ],
)
def test_apply_ends_at_once_where_waiting_does_not_help(
    fairlead: Fairlead, api: Any, at_home: Path, failure: dict[str, Any]
) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    applies(api, "PUT /services/default/digits", refused(**failure), status=201)
    api.on("GET /services/default/digits", refused(**failure))

    code, _, told = fairlead("services", "apply", "-f", "service.yaml", "--wait")

    assert code == 3
    assert "cannot start digits-00001, and waiting does not help: no file model.onnx" in told


@pytest.mark.parametrize("failure", [pytest.param({}, id="once"), pytest.param({"restarts": 5}, id="some times")])
def test_apply_waits_on_while_a_model_may_load_yet(
    fairlead: Fairlead, api: Any, at_home: Path, failure: dict[str, Any]
) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    applies(api, "PUT /services/default/digits", refused(**failure), status=201)
    api.on("GET /services/default/digits", refused(**failure), SERVICE)
    assert fairlead("services", "apply", "-f", "service.yaml", "--wait")[0] == 0


def test_a_cluster_that_refuses_for_long_ends_the_wait() -> None:
    at, refusals = 0.0, Refusals(clock=lambda: at)
    waits = {"condition": "ClusterRefuses", "evidence": "Kubernetes refused PATCH: no such field"}
    refusals.check({**SERVICE, "waits": waits})
    at = 9.0
    refusals.check({**SERVICE, "waits": None})
    refusals.check({**SERVICE, "waits": waits})
    at = 20.0
    with pytest.raises(EndedBadly, match="no such field"):
        refusals.check({**SERVICE, "waits": waits})


@pytest.mark.parametrize(("phase", "code"), [("Healthy", 0), ("Degraded", 3)])
def test_apply_waits_for_the_rollout_that_it_starts(
    fairlead: Fairlead, api: Any, at_home: Path, phase: str, code: int
) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    applies(api, "PUT /services/default/digits", {**SERVICE, "rollout": rollout("Progressing")})
    api.on("GET /rollouts/7", rollout(phase, "because of this"))
    api.on("GET /services/default/digits", SERVICE)

    ended, _, told = fairlead("services", "apply", "-f", "service.yaml", "--wait")

    assert (ended, "because of this" in told) == (code, True)


@pytest.mark.parametrize(
    ("ended", "code"),
    [
        pytest.param({"phase": "Degraded"}, 3, id="it was found bad"),
        pytest.param({"phase": "Aborted"}, 6, id="somebody gave it up"),
        pytest.param({"phase": "Healthy"}, 3, id="something else was rolled out since"),
        pytest.param({"phase": "Healthy", "then": "end"}, 0, id="a shadow that was to end"),
    ],
)
def test_apply_of_a_file_that_is_not_live_says_what_is(
    fairlead: Fairlead, api: Any, at_home: Path, ended: dict[str, str], code: int
) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    file = {"is_live": False, "message": "digits-00001 is live, not what the file says: rollout 7 ended so"}
    service = {**SERVICE, "file": file, "rollout": {**rollout("x"), **ended}}
    applies(api, "PUT /services/default/digits", service)
    api.on("GET /services/default/digits", service)

    got, _, told = fairlead("services", "apply", "-f", "service.yaml", "--wait")

    assert got == code
    assert (f"service default/digits: {file['message']}" == told.splitlines()[-1]) is (code > 0)


def test_apply_that_waits_too_long_ends_with_4(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    applies(api, "PUT /services/default/digits", {**SERVICE, "phase": "Pending"})
    api.on("GET /services/default/digits", {**SERVICE, "phase": "Pending"})

    code, _, told = fairlead("services", "apply", "-f", "service.yaml", "--wait", "--timeout", "0")

    assert (code, told.splitlines()[-1].split(";")[0]) == (4, "service default/digits as Ready was not there after 0 s")


def test_apply_of_no_file_names_it(fairlead: Fairlead, at_home: Path) -> None:
    assert fairlead("services", "apply", "-f", "no.yaml") == (
        1,
        "",
        "no.yaml cannot be read: No such file or directory\n",
    )


def test_show_lists_the_revisions(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /services/default/digits", SERVICE)

    code, said, _ = fairlead("services", "show", "digits")

    assert code == 0
    assert said.splitlines()[-1].split() == ["digits-00001", "1", "stable", "1/2", "-", "100", "%", "100", "%", "0"]


def test_show_says_what_scaling_to_zero_saved(fairlead: Fairlead, api: Any) -> None:
    for slept, line in (
        ({}, "-"),
        ({"asleep_hours": 0.0, "asleep_saved": None, "currency": ""}, "-"),
        ({"asleep_hours": 3.0, "asleep_saved": None, "currency": ""}, "3.00 replica hours"),
        ({"asleep_hours": 3.0, "asleep_saved": 1.5, "currency": "EUR"}, "3.00 replica hours, 1.5 EUR"),
    ):
        revisions = [SERVICE["revisions"][0] | slept]
        api.on("GET /services/default/digits", SERVICE | {"stable_revision": "digits-00001", "revisions": revisions})
        _, said, _ = fairlead("services", "show", "digits")
        (shown,) = (each for each in said.splitlines() if each.startswith("saved by sleep"))
        assert shown.removeprefix("saved by sleep").strip() == line


def test_show_names_callers_and_limits(fairlead: Fairlead, api: Any) -> None:
    limits = {"requestsPerSecond": 5, "perCaller": {"rowsPerMinute": 9}}
    api.on("GET /services/default/digits", SERVICE | {"access": {"teams": ["fraud", "risk"]}, "limits": limits})

    _, said, _ = fairlead("services", "show", "digits")

    assert "teams fraud, risk\n" in said
    assert "requestsPerSecond 5; perCaller rowsPerMinute 9\n" in said


def test_show_names_objectives_and_takes_a_server_that_knows_none(fairlead: Fairlead, api: Any) -> None:
    objectives = {"availability": 99.9, "latency": {"percent": 99, "withinMs": 200}}
    for answer, line in (
        (SERVICE | {"objectives": objectives}, ["availability 99.9; latency percent 99; withinMs 200"]),
        (SERVICE, ["-"]),
    ):
        api.on("GET /services/default/digits", answer)
        _, said, _ = fairlead("services", "show", "digits")
        (shown,) = (each for each in said.splitlines() if each.startswith("objectives"))
        assert shown.split(maxsplit=1)[1:] == line


def test_show_lists_the_error_budgets(fairlead: Fairlead, api: Any) -> None:
    budget = {"objective": "latency", "target_percent": 99.9, "within_ms": 200, "requests": 24000, "failures": 12}
    spent = {"measured_percent": 99.95, "burn_rate": 0.5, "left_percent": 50.0}
    unknown = {"requests": 0, "failures": 0, "measured_percent": None, "burn_rate": None, "left_percent": None}
    budgets = [budget | spent, budget | unknown | {"objective": "availability"}]
    answer = {"window_days": 30, "since": "2026-01-01T12:00:00Z", "budgets": budgets}
    api.on("GET /services/default/digits", SERVICE | {"objectives": {"availability": 99.9}})
    api.on("GET /services/default/digits/objectives", answer)

    code, said, _ = fairlead("services", "show", "digits")

    assert code == 0
    rows = [line.split() for line in said.splitlines()]
    assert ["latency", "99.9", "%", "99.95", "%", "12/24000", "0.5", "50", "%"] in rows
    assert ["availability", "99.9", "%", "-", "0/0", "-", "-"] in rows
    assert "since 2026-01-01T12:00:00Z, of a window of 30 days\n" in said


def test_show_says_which_gpu_and_why(fairlead: Fairlead, api: Any) -> None:
    slice_ = "nvidia.com/mig-1g.10gb"
    placement = {"asked": "auto", "resource": slice_, "products": ["NVIDIA-A30"], "why": "5 GiB measured on a CPU"}
    placed = {**SERVICE["revisions"][0], "placement": placement}
    api.on("GET /services/default/digits", {**SERVICE, "revisions": [placed]})

    _, said, _ = fairlead("services", "show", "digits")

    told = f"digits-00001 on {slice_}, on nodes with NVIDIA-A30: 5 GiB measured on a CPU"
    assert said.splitlines()[-1] == told


@pytest.mark.parametrize("name", ["", "a/b/c", "/x", "x/"])
def test_what_names_no_service_is_refused(fairlead: Fairlead, api: Any, name: str) -> None:
    code, _, complained = fairlead("services", "show", name)

    assert (code, complained) == (1, f"{name!r} is no service; expected NAME or NAMESPACE/NAME\n")
    assert api.seen == []


def test_events_are_oldest_first(fairlead: Fairlead, api: Any) -> None:
    newest_first = [{"seq": seq, "at": "t", "kind": "k", "revision": None, "message": f"m{seq}"} for seq in (9, 8)]
    api.on("GET /services/team/digits/events?limit=2", {"next": None, "results": newest_first})

    _, said, _ = fairlead("events", "team/digits", "--limit", "2")

    assert [line.split()[-1] for line in said.splitlines()[1:]] == ["m8", "m9"]


POLICY = {
    "name": "careful",
    "strategy": "canary",
    "steps": [{"weight": 10, "hold": "10s", "pause": False, "analysis": {"minRequests": 100}}, {"weight": 100}],
    "onInconclusive": "pause",
}


def test_a_policy_is_applied_by_its_name(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "policy.yaml").write_text("name: careful\nstrategy: canary\n")
    applies(api, "PUT /policies/careful", POLICY, status=201)

    code, said, _ = fairlead("policies", "apply", "-f", "policy.yaml")

    assert (code, "10 %, 100 %" in said) == (0, True)


def test_a_policy_shows_its_steps(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /policies/careful", POLICY)

    _, said, _ = fairlead("policies", "show", "careful")

    assert said.splitlines()[-2].split() == ["10", "%", "10s", "no", "minRequests", "100"]


def test_a_policy_without_a_name_is_refused_here(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "policy.yaml").write_text("strategy: canary\n")

    assert fairlead("policies", "apply", "-f", "policy.yaml") == (
        1,
        "",
        "policy.yaml names no policy; expected a field `name`\n",
    )


def logged(at_home: Path) -> None:
    folder = at_home / ".fairlead" / "logs"
    folder.mkdir(parents=True)
    (folder / "default.digits-00001-0.log").write_text("one\ntwo \x1b[2J\nthree\n")
    (folder / "default.digits-00010-0.log").write_text("another revision's\n")
    (folder / "team.digits-00001-0.log").write_text("another namespace's\n")


def test_logs_are_the_last_lines_of_the_services_replicas(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    logged(at_home)
    api.on("GET /services/default/digits", SERVICE)

    assert fairlead("services", "logs", "digits", "--lines", "2") == (
        0,
        "digits-00001-0  two ?[2J\ndigits-00001-0  three\n",
        "",
    )


def test_logs_of_one_request_are_those_of_web_and_worker_too(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    logged(at_home)
    folder = at_home / ".fairlead" / "logs"
    (folder / "worker.log").write_text("t INFO deployments [order-66] one\nt INFO deployments [order-67] another\n")
    (folder / "default.digits-00001-0.log").write_text("request_id=order-66 model=digits\nrequest_id=order-67\n")
    api.on("GET /services/default/digits", SERVICE)

    assert fairlead("services", "logs", "digits", "--request", "order-66") == (
        0,
        "worker  t INFO deployments [order-66] one\ndigits-00001-0  request_id=order-66 model=digits\n",
        "",
    )


def test_logs_of_an_unknown_revision_are_refused(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.on("GET /services/default/digits", SERVICE)

    assert fairlead("services", "logs", "digits", "--revision", "x") == (
        1,
        "",
        "service default/digits has no revision x; it has digits-00001\n",
    )


def test_logs_elsewhere_say_where_they_are(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    api.on("GET /services/default/digits", SERVICE)

    code, _, complained = fairlead("services", "logs", "digits")

    assert (code, complained.split(";")[0]) == (1, f"there are no logs in {at_home}/.fairlead")


def test_events_without_a_service_are_those_of_the_platforms_own_parts(fairlead: Fairlead, api: Any) -> None:
    newest_first = [{"seq": seq, "at": f"t{seq}", "kind": "k", "message": f"m{seq}"} for seq in (9, 8)]
    api.on("GET /clusters", {"next": None, "results": [{"name": "local"}]})
    api.on("GET /clusters/local/events?limit=50", {"next": None, "results": newest_first})

    _, said, _ = fairlead("events")

    assert [line.split() for line in said.splitlines()[1:]] == [
        ["local", "8", "t8", "k", "m8"],
        ["local", "9", "t9", "k", "m9"],
    ]


@pytest.mark.parametrize("limit", ["0", "-1", "some"])
def test_a_number_of_events_that_is_none_is_a_wrong_command_line(fairlead: Fairlead, limit: str) -> None:
    code, _, complained = fairlead("events", "digits", "--limit", limit)

    assert (code, f"'{limit}' is no number of entries; expected 1 or more" in complained) == (2, True)


def _file(version: int, name: str = "digits") -> str:
    return f"metadata: {{name: {name}}}\nspec: {{predictor: {{model: {{storageUri: 'models:/digits/{version}'}}}}}}\n"


def _plan(outcome: str, before: int | None, after: int) -> dict[str, Any]:
    def document(version: int | None) -> Any:
        return version and {"spec": {"predictor": {"model": {"storageUri": f"models:/digits/{version}"}}}}

    message = "new revision digits-00002; rollout by policy careful"
    return {"outcome": outcome, "message": message, "before": document(before), "after": document(after)}


DIFFERENCE = (
    "services/default/digits: changed, new revision digits-00002; rollout by policy careful\n"
    "    spec.predictor.model.storageUri: models:/digits/1 -> models:/digits/2\n"
)


def test_apply_tells_the_difference_before_it_acts(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "service.yaml").write_text(_file(2))
    applies(api, "PUT /services/default/digits", SERVICE, plan=_plan("changed", 1, 2))

    code, _, told = fairlead("services", "apply", "-f", "service.yaml")

    assert (code, told) == (0, DIFFERENCE)
    assert [seen.path for seen in api.seen] == ["/services/default/digits?dry_run=true", "/services/default/digits"]


def test_a_dry_run_answers_the_difference_and_does_nothing(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "service.yaml").write_text(_file(2))
    applies(api, "PUT /services/default/digits", SERVICE, plan=_plan("changed", 1, 2))

    assert fairlead("services", "apply", "-f", "service.yaml", "--dry-run") == (0, DIFFERENCE, "")
    assert [seen.path for seen in api.seen] == ["/services/default/digits?dry_run=true"]


def test_nothing_is_applied_where_one_of_several_documents_is_refused(
    fairlead: Fairlead, api: Any, at_home: Path
) -> None:
    (at_home / "services.yaml").write_text(f"{_file(2)}---\n{_file(9, 'letters')}")
    applies(api, "PUT /services/default/digits", SERVICE)
    api.refuse("PUT /services/default/letters?dry_run=true", 404, "no version 9 of digits")

    code, _, told = fairlead("services", "apply", "-f", "services.yaml")

    assert (code, told) == (
        1,
        "services/default/letters: no version 9 of digits; nothing of the file was applied\n",
    )
    assert all(seen.path.endswith("?dry_run=true") for seen in api.seen)


def test_several_documents_are_applied_in_their_order(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "services.yaml").write_text(f"{_file(2)}---\n{_file(1, 'letters')}")
    applies(api, "PUT /services/default/digits", SERVICE)
    applies(api, "PUT /services/default/letters", {**SERVICE, "name": "letters"})

    code, said, _ = fairlead("services", "apply", "-f", "services.yaml", "--output", "json")

    assert (code, [service["name"] for service in json.loads(said)]) == (0, ["digits", "letters"])


FAILING = {
    **SERVICE["revisions"][0],
    "is_failing": True,
    "last_failure": {
        "reason": "ModelLoadFailed",
        "message": "runtime ended with exit code 1: no ONNX model",
        "at": "2026-01-01T12:00:00.5Z",
        "exit_code": 1,
        "replica": "digits-00001-abc",
        "container": "runtime",
        "events": [{"at": "2026-01-01T12:00:00Z", "reason": "BackOff", "message": "again\x1b[2J", "count": 3}],
        "log": ["loading", "no ONNX model"],
    },
}


def test_show_tells_why_a_revision_fails(fairlead: Fairlead, api: Any) -> None:
    healed = {**FAILING, "name": "digits-00002", "is_failing": False}
    api.on("GET /services/default/digits", {**SERVICE, "revisions": [FAILING, healed]})

    code, said, _ = fairlead("services", "show", "digits")

    assert code == 0
    assert "last failure of digits-00001\n  reason     ModelLoadFailed\n" in said
    assert "  exit code  1\n" in said
    assert "its last lines\n  | loading\n  | no ONNX model\n" in said
    assert "  2026-01-01T12:00:00Z  BackOff: again?[2J (3 times)\n" in said
    assert "last failure of digits-00002" not in said


def test_a_wait_that_ends_badly_tells_why_the_replicas_fail(fairlead: Fairlead, api: Any, at_home: Path) -> None:
    (at_home / "service.yaml").write_text("metadata: {name: digits}\n")
    pending = {**SERVICE, "phase": "Pending", "revisions": [FAILING]}
    applies(api, "PUT /services/default/digits", pending, status=201)
    api.on("GET /services/default/digits", pending)

    code, _, told = fairlead("services", "apply", "-f", "service.yaml", "--wait", "--timeout", "0")

    assert code == 4
    assert "last failure of digits-00001\n" in told
    assert "  | no ONNX model\n" in told
