"""One policy from copies over a group to everybody, on a whole platform under traffic: no request fails."""

import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e._support.platforms import LONG_ON_KUBERNETES
from tests.e2e.harness import Platform, failed, serve_digits, traffic, until

pytestmark = [pytest.mark.e2e, LONG_ON_KUBERNETES]

POLICY = """
name: progressive
strategy: canary
steps:
  - mirror: 50
    hold: 1s
    analysis: {minRequests: 50, maxSlowPercent: 90, deadline: 2m}
  - match: [{header: x-group, exact: beta}]
    pause: true
  - weight: 20
    pause: true
  - weight: 60
    pause: true
analysis: {minRequests: 50, maxSlowPercent: 90}
deadline: 20m
scaleDownDelay: 1s
"""
STICKY = "sessionAffinity: {header: x-session}\n"
WAIT_S = 120
SESSIONS = [f"user-{number}" for number in range(60)]


def _asked(platform: Platform, **headers: str) -> str:
    """Return which revision answered a request with these headers."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"http://{platform.gateway}/serving/default/digits/v2/models/digits"
    with urllib.request.urlopen(urllib.request.Request(url, headers=named), timeout=20) as answer:
        return str(answer.headers["fairlead-revision"])


def test_from_copies_over_a_group_to_everybody(anywhere: Platform, models: Path, tmp_path: Path) -> None:
    platform = anywhere
    has_sessions = platform.cluster == "local"  # refused on Kubernetes: docs/decisions/0013
    serve_digits(platform, models, POLICY + STICKY if has_sessions else POLICY)
    with platform.client() as client, traffic(platform, models, tmp_path, "default/digits") as log:
        begun = client.post("services/default/digits/rollouts", {"version": "2"})
        stable, canary = begun["from_revision"], begun["to_revision"]

        def paused(step_index: int) -> dict[str, Any]:
            def look() -> dict[str, Any] | None:
                seen = client.get(f"rollouts/{begun['id']}")
                there = (seen["phase"], seen["step_index"]) == ("Paused", step_index)
                return seen if there else None

            found = until(look, WAIT_S, f"it waits at step {step_index + 1}")
            assert found is not None
            return found

        def with_the_canary() -> set[str]:
            return {session for session in SESSIONS if _asked(platform, x_session=session) == canary}

        seen = paused(1)
        copies = seen["analysis_runs"][0]
        assert (copies["mirror_percent"], copies["weight_percent"], copies["verdict"]) == (50, 0, "Successful")
        assert seen["match_actual"] == [{"header": "x-group", "exact": "beta"}]
        assert {_asked(platform, x_group="beta") for _ in range(20)} == {canary}
        assert {_asked(platform, x_group="alpha") for _ in range(20)} == {stable}
        log.read()
        assert {request.revision for request in log.requests} == {stable}, "so far nobody else has seen it"
        platform.fairlead("rollouts", "promote", "digits")
        paused(2)
        first = with_the_canary()
        assert 0 < len(first) < len(SESSIONS)
        if has_sessions:
            assert first == with_the_canary(), "within a step nobody moves"
        platform.fairlead("rollouts", "promote", "digits")
        paused(3)
        assert not has_sessions or first <= with_the_canary(), "who has the canary keeps it"
        platform.fairlead("rollouts", "promote", "digits")
        ended = until(
            lambda: next((r for r in [client.get(f"rollouts/{begun['id']}")] if r["phase"] == "Healthy"), None), WAIT_S
        )
        assert ended is not None
        assert (ended["weight_actual"], ended["analysis_runs"][-1]["step_index"]) == (100, None)
        log.read()
        before = len(log.requests)
        until(lambda: (log.read(), len(log.requests) > before + 50)[1], WAIT_S, "more traffic")
    assert failed(log) == []
    assert log.requests[-1].revision == canary
