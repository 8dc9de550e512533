"""A shadow whose answers are compared, through the whole loop, on the database with a fake outside."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import Unavailable
from deployments.domain.phases import Phase
from deployments.models import AnalysisRun, ComparisonRun
from integrations.clusters.base import Exchange, Tap
from tests.comparisons import SCORES, exchange, fp32
from tests.deployments._support.platform import Platform

COMPARISON = {"minPairs": 100, "minAgreementPercent": 98, "topK": 1, "sample": 50}
STEPS = [{"weight": 50, "hold": "4s", "analysis": {"minRequests": 50, "comparison": COMPARISON}}]
SERVICE = ("default", "digits")
STABLE, SHADOW = "digits-00001", "digits-00002"


class Shadowing:
    """A shadow rollout whose taps record what `answer` tells it to."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform
        self.sent = 0
        platform.live()
        platform.version(2)
        platform.policy(name="shadow", strategy="shadow", steps=STEPS)
        platform.start(policy="shadow")
        platform.until(AnalysisRun.objects.exists)

    def answer(self, count: int, *shadow: dict[str, Any], copied: bool = True, **more: Any) -> None:
        """Record so many requests that stable answered, and the shadow as told, or as stable did."""
        recorded = self.platform.cluster.recorded.setdefault(SERVICE, [])
        at = self.platform.clock().timestamp()
        for _ in range(count):
            self.sent += 1
            asked = [float(self.sent), 0.0]
            recorded.append(exchange(f"r{self.sent}", STABLE, at, fp32("scores", SCORES), asked=asked))
            if copied:
                outputs = shadow or (fp32("scores", SCORES),)
                recorded.append(exchange(f"r{self.sent}", SHADOW, at, *outputs, asked=asked, **more))

    def turn(self) -> ComparisonRun:
        self.platform.traffic(100)
        self.platform.turn()
        return self.run()

    def run(self) -> ComparisonRun:
        return ComparisonRun.objects.get()

    def measured(self) -> dict[str, Any]:
        measurements: list[dict[str, Any]] = AnalysisRun.objects.get().measurements
        [found] = [each for each in measurements if each["metric"] == "answer_agreement"]
        return found


@pytest.fixture
def shadowing(platform: Platform) -> Shadowing:
    return Shadowing(platform)


FLIPPED = fp32("scores", [0.9, 0.05, 0.05])


def test_both_sides_record_the_same_sample_while_answers_are_compared(shadowing: Shadowing) -> None:
    desired = shadowing.platform.cluster.desired[SERVICE]
    assert {revision.name: revision.tap for revision in desired.revisions} == {STABLE: Tap(50), SHADOW: Tap(50)}


def test_a_shadow_that_agrees_passes_when_enough_was_compared(shadowing: Shadowing) -> None:
    for _ in range(5):
        shadowing.answer(30, copied=False)
        shadowing.answer(15)
        shadowing.turn()
    assert shadowing.platform.rollout().phase == Phase.PROGRESSING
    assert shadowing.measured()["verdict"] == "Running"
    assert shadowing.measured()["more_requests"] == 25
    assert "a verdict needs 25 more" in shadowing.platform.rollout().reason_message
    shadowing.answer(25)
    shadowing.turn()
    assert shadowing.platform.rollout().phase == Phase.PAUSED
    found = shadowing.measured()
    assert (found["verdict"], found["canary"], found["limit"]) == ("Successful", 100.0, 98.0)
    assert (shadowing.run().report["pairs"], shadowing.run().stable_alone) == (100, 150)


def test_a_wrong_shadow_fails_and_gets_no_copies_any_more(shadowing: Shadowing) -> None:
    shadowing.answer(40, FLIPPED)
    shadowing.turn()
    rollout = shadowing.platform.rollout()
    assert (rollout.phase, rollout.reason_code) == (Phase.DEGRADED, "AnalysisFailed")
    assert "the new version's answers agree with stable's in 0 % of 40 requests" in rollout.reason_message
    assert "another class is the best" in rollout.reason_message
    assert shadowing.measured()["evidence_percent"] == 100
    shadowing.platform.turn()
    assert shadowing.platform.cluster.copies() == {}
    assert not any(revision.tap for revision in shadowing.platform.cluster.desired[SERVICE].revisions)


def test_two_that_differ_prove_nothing(shadowing: Shadowing) -> None:
    shadowing.answer(2, FLIPPED)
    shadowing.turn()
    assert shadowing.measured()["verdict"] == "Running"
    assert 0 < shadowing.measured()["evidence_percent"] < 100


@pytest.mark.parametrize("wrong", [False, True])
def test_an_outage_of_the_taps_neither_promotes_nor_fails(
    shadowing: Shadowing, monkeypatch: pytest.MonkeyPatch, wrong: bool
) -> None:
    shadowing.answer(200, *([FLIPPED] if wrong else []))
    cluster = shadowing.platform.cluster
    whole = cluster.exchanges

    def away(*_: str) -> tuple[list[Exchange], str]:
        raise Unavailable("the disk is gone")

    cluster.exchanges = away  # type: ignore[method-assign]
    for _ in range(5):
        shadowing.turn()
    assert shadowing.platform.rollout().phase == Phase.PROGRESSING
    assert "the disk is gone" in shadowing.measured()["message"]
    cluster.exchanges = whole  # type: ignore[method-assign]
    shadowing.turn()
    assert shadowing.platform.rollout().phase == (Phase.DEGRADED if wrong else Phase.PAUSED)


def test_halves_that_are_read_in_different_turns_are_joined(shadowing: Shadowing) -> None:
    shadowing.answer(3)
    recorded = shadowing.platform.cluster.recorded[SERVICE]
    late = [each for each in recorded if each.revision == SHADOW]
    recorded[:] = [each for each in recorded if each.revision == STABLE]
    run = shadowing.turn()
    assert (run.report["pairs"], run.stable_alone) == (0, 3)
    assert b"scores" not in bytes(run.waiting), "what clients sent is sealed"
    recorded.extend(late)
    run = shadowing.turn()
    assert (run.report["pairs"], run.stable_alone) == (3, 0)


def test_a_turn_that_is_overtaken_reads_the_same_exchanges_again(shadowing: Shadowing) -> None:
    shadowing.answer(7)

    def overtake(*found: Any) -> Any:
        service = shadowing.platform.rollout().service
        type(service).objects.filter(pk=service.pk).update(changes=service.changes + 1)
        cluster.exchanges = whole  # type: ignore[method-assign]
        return whole(*found)

    cluster = shadowing.platform.cluster
    whole = cluster.exchanges
    cluster.exchanges = overtake  # type: ignore[method-assign]
    assert shadowing.platform.turn() == "overtaken"
    assert shadowing.run().report["pairs"] == 0
    assert shadowing.turn().report["pairs"] == 7
    assert shadowing.turn().report["pairs"] == 7


def test_pairs_that_cannot_be_compared_are_counted_apart(shadowing: Shadowing) -> None:
    shadowing.answer(1, {"name": "scores", "datatype": "FP32", "shape": [-1], "data": []})
    shadowing.answer(1, response={"error": "no such version"}, error_code="NOT_FOUND")
    shadowing.answer(1)
    recorded = shadowing.platform.cluster.recorded[SERVICE]
    recorded[-1] = replace(recorded[-1], request={"inputs": [fp32("image", [7.0, 7.0])]})
    report = shadowing.turn().report
    assert (report["pairs"], report["unreadable"], report["strangers"]) == (0, 1, 2)
    assert "dimensions are whole numbers" in report["unreadable_message"]


def test_what_was_recorded_before_the_step_is_left_out(shadowing: Shadowing) -> None:
    shadowing.answer(5)
    recorded = shadowing.platform.cluster.recorded[SERVICE]
    recorded[:] = [replace(each, at=each.at - 3600) for each in recorded]
    assert shadowing.turn().report["pairs"] == 0
