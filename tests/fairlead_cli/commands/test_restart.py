"""`fairlead services restart`."""

import json
from collections.abc import Callable
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]


def service(*left: int) -> dict[str, Any]:
    return {"namespace": "default", "name": "digits", "revisions": [{"replicas_to_restart": each} for each in left]}


def test_restart_asks_and_returns(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /services/default/digits/restart", service(2), status=202)
    code, said, _ = fairlead("services", "restart", "digits", "--output", "json")
    assert (code, json.loads(said)) == (0, {"restarting": "default/digits"})


def test_restart_waits_until_no_replica_is_left(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /services/default/digits/restart", service(2), status=202)
    api.on("GET /services/default/digits", service(1, 1), service(0, 1), service(0, 0))
    code, said, told = fairlead("services", "restart", "digits", "--wait")
    assert (code, said) == (0, "restarted the replicas of default/digits\n")
    assert told.splitlines() == [f"{left} replicas left to restart" for left in (2, 1, 0)]


def test_restart_that_waits_too_long_ends_with_4(fairlead: Fairlead, api: Any) -> None:
    api.on("POST /services/default/digits/restart", service(1), status=202)
    api.on("GET /services/default/digits", service(1))
    assert fairlead("services", "restart", "digits", "--wait", "--timeout", "0")[0] == 4
