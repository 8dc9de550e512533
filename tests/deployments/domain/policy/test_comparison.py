"""The `comparison` of a step's analysis: read, written, refused."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.comparison.comparison_policy import Terms, Tolerance
from deployments.domain.policy import parse_policy, policy_json


def file(comparison: Any, strategy: str = "shadow") -> dict[str, Any]:
    return {"name": "p", "strategy": strategy, "steps": [{"weight": 10, "analysis": {"comparison": comparison}}]}


def terms(comparison: Any) -> Terms | None:
    gate = parse_policy(file(comparison)).steps[0].gate
    assert gate is not None
    return gate.comparison


ALL: dict[str, Any] = {
    "minPairs": 500,
    "minAgreementPercent": 99.5,
    "topK": 1,
    "tolerances": {"scores": {"abs": 0.01, "rel": 0.1, "topK": 5, "cosine": 0.999}, "at": None},
    "sample": 20,
}


def test_every_field_is_read() -> None:
    assert terms(ALL) == Terms(500, 99.5, 1, {"scores": Tolerance(0.01, 0.1, 5, 0.999), "at": None}, 20.0)


def test_what_is_left_out_has_the_documented_defaults() -> None:
    assert terms({}) == Terms(200, 99.0, None, {}, 100.0)
    assert terms(None) is None


@pytest.mark.parametrize("comparison", [ALL, {}], ids=["all fields", "no field"])
def test_a_policy_that_compares_is_written_and_read_back(comparison: Any) -> None:
    policy = parse_policy(file(comparison))
    assert parse_policy(policy_json(policy)) == policy


@pytest.mark.parametrize(
    ("comparison", "field", "words"),
    [
        ({"minPairs": 0}, "minPairs", "a whole number from 1"),
        ({"minAgreementPercent": 101}, "minAgreementPercent", "a number from 0 to 100"),
        ({"topK": 0}, "topK", "a whole number from 1"),
        ({"sample": 0}, "sample", "a number from 0.001"),
        ({"tolerance": {}}, "tolerance", "not a field"),
        ({"tolerances": [1]}, "tolerances", "expected outputs by name"),
        ({"tolerances": {"y": {}}}, "tolerances.y", "asks nothing"),
        ({"tolerances": {"y": 0.1}}, "tolerances.y", "expected an object"),
        ({"tolerances": {"y": {"abs": -1}}}, "tolerances.y.abs", "a number from 0"),
        ({"tolerances": {"y": {"cosine": 1.1}}}, "tolerances.y.cosine", "a number from 0 to 1"),
        ({"tolerances": {"y": {"atol": 1}}}, "tolerances.y.atol", "not a field"),
        ({"tolerances": {f"y{number}": {"abs": 1} for number in range(101)}}, "tolerances", "at most 100"),
    ],
)
def test_a_mistake_is_refused_with_the_name_of_the_field(comparison: Any, field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        terms(comparison)
    assert refused.value.field == f"steps[0].analysis.comparison.{field}"
    assert words in refused.value.message


@pytest.mark.parametrize("strategy", ["canary", "blueGreen"])
def test_only_steps_that_copy_requests_can_compare(strategy: str) -> None:
    asked = file({}, strategy)
    asked["steps"][0]["weight"] = 100
    with pytest.raises(InvalidInput, match="only a step that copies requests has"):
        parse_policy(asked)
