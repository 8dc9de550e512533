"""Which policies let wrong answers through."""

from typing import Any

import pytest

from deployments.domain.policy import parse_policy, uncompared

COMPARED = {"analysis": {"comparison": {"minPairs": 5}}}


def warning(*steps: dict[str, Any], **more: Any) -> str:
    return uncompared(parse_policy({"name": "p", "steps": list(steps), **more}))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        pytest.param(warning({"weight": 10, "analysis": {}}), "without errors, is promoted; add mirror", id="a canary"),
        pytest.param(
            warning({"weight": 10, "pause": True}), "is promoted unless somebody aborts it; ", id="people look at it"
        ),
        pytest.param(
            warning({"weight": 10, "analysis": {}}, strategy="shadow", then="end"),
            "ends Healthy; add analysis.comparison to a step",
            id="a shadow that copies for load alone",
        ),
    ],
)
def test_wrong_answers_pass(said: str, told: str) -> None:
    assert said.startswith("no step compares answers: ")
    assert told in said


def test_a_step_that_compares_answers_needs_no_warning() -> None:
    assert warning({"weight": 10, **COMPARED}, strategy="shadow") == ""
    assert warning({"mirror": 10, **COMPARED}, {"weight": 50}) == ""
