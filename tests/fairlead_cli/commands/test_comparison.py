"""`fairlead rollouts comparison`: how a shadow's answers differ, for people and for programs."""

import json
from collections.abc import Callable
from typing import Any

Fairlead = Callable[..., tuple[int, str, str]]

SPREAD = {"sizeless": 0, "largest": 0.51234}
STEP: dict[str, Any] = {
    "step_index": 0,
    "measurement": {"verdict": "Running", "message": "the answers agree in 96.67 % of 300 requests\x1b[2J"},
    "outputs": [
        {
            "name": "scores",
            "datatype": "FP32",
            "kinds": {"Beyond": 9, "Equal": 291},
            "absolute": SPREAD,
            "relative": {"sizeless": 1, "largest": 0.1},
            "rankings": 300,
            "flips": 9,
        },
        {
            "name": "label",
            "datatype": "BYTES",
            "kinds": {"Equal": 300},
            "absolute": None,
            "relative": None,
            "rankings": 0,
            "flips": 0,
        },
    ],
    "worst": [{"request_id": "r50", "at": "2026-01-01T00:00:00Z", "message": "scores: values differ by up to 0.512"}],
}


def on_a_shadow(api: Any, *steps: dict[str, Any]) -> None:
    rollout = {"id": 7, "service": "default/digits"}
    api.on("GET /services/default/digits", {"rollout": rollout})
    api.on("GET /rollouts/7/comparison", {"rollout": 7, "steps": list(steps)})


def test_people_see_agreement_outputs_and_the_worst_requests(fairlead: Fairlead, api: Any) -> None:
    on_a_shadow(api, STEP)
    code, said, _ = fairlead("rollouts", "comparison", "digits")
    assert code == 0
    assert "step 1, Running: the answers agree in 96.67 % of 300 requests?[2J" in said
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert "scores FP32 9 Beyond, 291 Equal 0.512 not a number 9 of 300" in lines
    assert "label BYTES 300 Equal - - -" in lines
    assert "r50 2026-01-01T00:00:00Z scores: values differ by up to 0.512" in lines


def test_programs_get_all_of_it(fairlead: Fairlead, api: Any) -> None:
    on_a_shadow(api, STEP)
    code, said, _ = fairlead("rollouts", "comparison", "digits", "--output", "json")
    assert code == 0
    assert json.loads(said)["steps"] == [STEP]


def test_a_rollout_that_compared_nothing_says_so(fairlead: Fairlead, api: Any) -> None:
    on_a_shadow(api)
    code, said, _ = fairlead("rollouts", "comparison", "digits")
    assert code == 0
    assert "rollout 7 of default/digits has compared no answers" in said
