"""`fairlead services stop` and `resume`."""

import json
from collections.abc import Callable
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]
_WAITS = {"condition": "Stopping", "evidence": "1 replica has yet to finish and end", "changes_when": "it ended"}


def service(phase: str, **more: Any) -> dict[str, Any]:
    base = {"namespace": "default", "name": "digits", "phase": phase, "reason": f"it is {phase}", "waits": None}
    return {**base, "revisions": [], **more}


def test_stop_waits_until_nothing_runs(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /services/default/digits/stop", service("Stopped", waits=_WAITS), status=202)
    api.on("GET /services/default/digits", service("Stopped", waits=_WAITS), service("Stopped"))
    code, said, told = fairlead("services", "stop", "digits", "--wait", "--output", "json")
    assert (code, json.loads(said)["waits"]) == (0, None)
    assert told == "Stopped: it is Stopped\n"


def test_resume_waits_until_it_is_ready(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /services/default/digits/resume", service("Pending"), status=202)
    api.on("GET /services/default/digits", service("Pending"), service("Ready"))
    code, _, told = fairlead("services", "resume", "digits", "--wait")
    assert (code, told.splitlines()) == (0, ["Pending: it is Pending", "Ready: it is Ready"])


def test_resume_and_restart_end_where_a_revision_can_never_start(fairlead: Fairlead, api: Any) -> None:
    failure = {"reason": "ModelLoadFailed", "message": "no such file", "at": "", "replica": "", "container": ""}
    failure |= {"exit_code": None, "events": [], "log": [], "is_final": True}
    revision = {"name": "digits-00001", "role": "stable", "is_failing": True, "last_failure": failure}
    revision |= {"replicas_ready": 0, "replicas_wanted": 1, "restarts": 0, "replicas_to_restart": 1}
    for verb in ("resume", "restart"):
        api.on(f"POST /services/default/digits/{verb}", service("Pending"), status=202)
        api.on("GET /services/default/digits", service("Pending", revisions=[revision]))
        code, _, told = fairlead("services", verb, "digits", "--wait")
        assert (code, "and waiting does not help: no such file" in told) == (3, True)


@pytest.mark.parametrize("verb", ["stop", "resume"])
def test_waiting_too_long_ends_with_4(fairlead: Fairlead, api: Any, verb: str) -> None:
    api.on(f"POST /services/default/digits/{verb}", service("Progressing"), status=202)
    api.on("GET /services/default/digits", service("Progressing"))
    assert fairlead("services", verb, "digits", "--wait", "--timeout", "0")[0] == 4
