"""Objectives of a service file: what they may be, and the sentence where they may not."""

from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.service_file import Objectives, objectives_json, parse_service, stored_objectives
from deployments.domain.service_file.objectives import BOUNDS_MS, LatencyObjective
from tests.deployments._support.service_files import FILE

WITHIN = "spec.objectives.latency.withinMs"


def document(objectives: Any) -> dict[str, Any]:
    """Return a service file with `spec.objectives`."""
    return {**FILE, "spec": {**FILE["spec"], "objectives": objectives}}


@pytest.mark.parametrize(
    ("said", "objectives"),
    [
        (None, None),
        ({}, None),
        ({"availability": None}, None),
        ({"availability": 99.9}, Objectives(99.9)),
        ({"latency": {"percent": 95, "withinMs": 7.5}}, Objectives(latency=LatencyObjective(95, 7.5))),
        ({"availability": 99.999, "latency": {"percent": 99, "withinMs": 200}}, Objectives(
            99.999, LatencyObjective(99, 200))),
    ],
)  # fmt: skip
def test_each_form_is_read_from_the_file_and_from_the_stored_one(said: Any, objectives: Objectives | None) -> None:
    assert parse_service(document(said)).objectives == objectives
    assert stored_objectives(said) == objectives
    assert parse_service(document(objectives_json(objectives))).objectives == objectives


@pytest.mark.parametrize("within_ms", BOUNDS_MS)
def test_a_latency_objective_can_name_each_bound_of_the_histogram(within_ms: float) -> None:
    found = parse_service(document({"latency": {"percent": 99, "withinMs": within_ms}})).objectives
    assert found == Objectives(latency=LatencyObjective(99, within_ms))


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("99.9 %", "spec.objectives is a text; expected an object with named fields"),
        (
            {"uptime": 99.9},
            "spec.objectives.uptime is not a field that Fairlead can honour here",
        ),
        ({"availability": 100}, "spec.objectives.availability is 100; expected a number from 95 to 99.999"),
        ({"availability": 0.999}, "spec.objectives.availability is 0.999; expected a number from 95 to 99.999"),
        ({"availability": "99.9"}, "spec.objectives.availability is '99.9'; expected a number from 95 to 99.999"),
        ({"availability": True}, "spec.objectives.availability is true or false; expected a number from 95 to 99.999"),
        ({"latency": {"withinMs": 200}}, "spec.objectives.latency.percent is missing"),
        ({"latency": {"percent": 99}}, "spec.objectives.latency.withinMs is missing"),
        (
            {"latency": {"percent": 50, "withinMs": 200}},
            "spec.objectives.latency.percent is 50; expected a number from 95 to 99.999",
        ),
        (
            {"latency": {"percent": 99, "withinMs": 120}},
            f"{WITHIN} is 120, but replicas count latencies up to 100 and 150; write one of these",
        ),
        (
            {"latency": {"percent": 99, "withinMs": 0.06}},
            f"{WITHIN} is 0.06, but replicas count latencies up to 0.05 and 0.1; write one of these",
        ),
        (
            {"latency": {"percent": 99, "withinMs": 20_000}},
            "spec.objectives.latency.withinMs is 20000; expected a number from 0.05 to 10000",
        ),
        (
            {"latency": {"percent": 99, "withinMs": 200, "p": 1}},
            "spec.objectives.latency.p is not a field that Fairlead can honour here",
        ),
    ],
)
def test_what_cannot_be_an_objective_is_refused_in_one_sentence(said: Any, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_service(document(said))
    assert refused.value.message.startswith(sentence)
    assert not refused.value.details


def test_all_faults_are_named_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_service(document({"availability": 1, "latency": {"percent": 1, "withinMs": 120}}))
    assert len(refused.value.details or ()) == 3


@pytest.mark.parametrize(
    "said", ["99.9 %", {"uptime": 99}, {"availability": 50}, {"latency": {"percent": 99, "withinMs": 120}}]
)
def test_what_a_later_release_stored_is_no_objective_of_this_one(said: Any) -> None:
    assert stored_objectives(said) is None
