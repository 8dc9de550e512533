"""Rollouts gated by numbers of Prometheus: looks, outages, crashes; a fake outside and a clock moved by hand."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from common.errors import Conflict, Unavailable
from deployments.domain.phases import Code, Phase
from deployments.models import AnalysisRun, InferenceService, Rollout, RolloutPolicy
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outcome, Outside
from integrations.metrics.prometheus import Answer
from tests.deployments._support.platform import Platform

QUERY = 'queue{ns="{{namespace}}",revision="{{revision}}",version="{{version}}"}[{{interval}}]'
OWN = 'namespace="default",service="digits"'
CANARY = f'queue {{{OWN},ns="default",revision="digits-00002",version="2"}} [10s]'
STABLE = f'queue {{{OWN},ns="default",revision="digits-00001",version="1"}} [10s]'


@dataclass
class FakePrometheus:
    """Answers what it was told to; remembers what it was asked."""

    numbers: dict[str, float | None] = field(default_factory=dict)
    problem: str = ""
    away: str = ""
    asked: list[Sequence[str]] = field(default_factory=list)

    def __call__(self, queries: Sequence[str]) -> Sequence[Answer]:
        self.asked.append(tuple(queries))
        if self.away:
            raise Unavailable(self.away)
        return [Answer(self.numbers.get(query), self.problem) for query in queries]


@dataclass
class Measured(Platform):
    """A platform with a Prometheus; every turn brings traffic."""

    prometheus: FakePrometheus = field(default_factory=FakePrometheus)

    @property
    def outside(self) -> Outside:
        return Outside(self.cluster, self.metrics, self.clock, ask=self.prometheus)

    def rolls_out(self, **metric: Any) -> None:
        """Begin a rollout to version 2, gated by one metric."""
        self.live()
        self.version(2)
        gate = {"minRequests": 50, "metrics": [{"name": "queue", "query": QUERY, **metric}]}
        self.policy(
            name="measured",
            steps=[{"weight": 10, "analysis": gate}, {"weight": 50, "hold": "1h"}],
            onInconclusive="abort",
        )
        self.start(policy="measured")

    def turns(self, seconds: float, *, every: float = 2.0) -> None:
        """Let time pass with traffic."""
        for _ in range(round(seconds / every)):
            self.traffic()
            self.turn(seconds=every)

    def reason(self) -> tuple[str, str]:
        return self.rollout().reason_code, self.rollout().reason_message

    def measurement(self) -> dict[str, Any]:
        run = AnalysisRun.objects.get(step_index=0)
        found: dict[str, Any] = next(each for each in run.measurements if each["metric"] == "queue")
        return found


@pytest.fixture
def platform(db: None, settings: Settings) -> Measured:
    settings.PROMETHEUS_URL = "http://127.0.0.1:9090"
    return Measured()


def test_a_canary_within_its_bounds_passes_after_the_looks_it_needs(platform: Measured) -> None:
    platform.prometheus.numbers = {CANARY: 2.0, STABLE: 1.5}
    platform.rolls_out(max=5)
    platform.until(AnalysisRun.objects.exists)
    platform.turns(28)
    code, message = platform.reason()
    assert code == Code.ANALYSIS_RUNNING
    assert message.endswith("the last was 2; a verdict needs 3 looks")
    platform.turns(8)
    assert platform.rollout().step_index == 1
    assert platform.prometheus.asked == [(CANARY, STABLE)] * 3
    found = platform.measurement()
    assert (found["verdict"], found["canary"], found["stable"], found["limit"]) == ("Successful", 2.0, 1.5, 5.0)


def test_one_look_is_taken_per_interval_however_often_the_reconciler_turns(platform: Measured) -> None:
    platform.prometheus.numbers = {CANARY: 9.0, STABLE: 1.5}
    platform.rolls_out(max=5, interval="20s")
    platform.until(AnalysisRun.objects.exists)
    for _ in range(100):
        platform.turn(seconds=0.5)
    assert len(platform.prometheus.asked) == 2


def test_a_canary_that_is_out_of_bounds_is_rolled_back(platform: Measured) -> None:
    platform.prometheus.numbers = {CANARY: 9.0, STABLE: 9.0}
    platform.rolls_out(max=5)
    platform.turns(120, every=10)
    code, message = platform.reason()
    assert (platform.rollout().phase, code) == (Phase.DEGRADED, Code.ANALYSIS_FAILED)
    looks = len(platform.prometheus.asked)
    assert (
        f"queue of the canary was above 5 in {looks} of {looks} looks, of which 10 % may be; the last was 9" in message
    )
    assert platform.cluster.weights() == {"digits-00001": 100}


def test_a_canary_that_is_worse_than_stable_in_every_look_is_rolled_back(platform: Measured) -> None:
    platform.prometheus.numbers = {CANARY: 9.0, STABLE: 6.0}
    platform.rolls_out(maxIncreasePercent=20)
    platform.turns(240, every=10)
    assert platform.rollout().phase == Phase.DEGRADED
    assert "queue of the canary was more than 20 % above stable's in" in platform.reason()[1]


def test_an_outage_neither_promotes_nor_fails_and_no_deadline_passes_in_it(platform: Measured) -> None:
    platform.prometheus.numbers = {CANARY: 2.0, STABLE: 1.5}
    platform.rolls_out(max=5, minLooks=5)
    platform.turns(40, every=10)
    platform.prometheus.away = "Prometheus at http://127.0.0.1:9090 does not answer: refused"
    asked = len(platform.prometheus.asked)
    platform.turns(180)
    assert len(platform.prometheus.asked) - asked <= 19, "it is asked every ten seconds, not at every turn"
    platform.turns(700, every=10)
    code, message = platform.reason()
    assert (platform.rollout().phase, code) == (Phase.PROGRESSING, Code.ANALYSIS_RUNNING)
    assert "does not answer: refused; nothing is decided until it does" in message
    platform.prometheus.away = ""
    platform.turns(40, every=10)
    assert platform.rollout().step_index == 1


def test_an_outage_keeps_no_other_measurement_from_failing_the_canary(platform: Measured) -> None:
    platform.prometheus.away = "away"
    platform.rolls_out(max=5)
    platform.until(AnalysisRun.objects.exists)
    platform.turns(12)
    platform.bad_time(failed=8)
    platform.turn()
    assert platform.rollout().phase == Phase.DEGRADED
    assert "requests to the canary failed" in platform.reason()[1]


def test_a_query_at_fault_is_told_and_ends_inconclusive(platform: Measured) -> None:
    platform.prometheus.problem = "Prometheus refuses the query: parse error"
    platform.rolls_out(max=5)
    platform.turns(60, every=10)
    assert "queue has no number for the canary; Prometheus refuses the query: parse error" in platform.reason()[1]
    platform.turns(300, every=10)
    assert (platform.rollout().phase, platform.reason()[0]) == (Phase.ABORTED, Code.ANALYSIS_INCONCLUSIVE)


def test_a_look_that_a_crash_lost_is_taken_again_and_counts_once(platform: Measured) -> None:
    platform.prometheus.numbers = {CANARY: 9.0, STABLE: 1.5}
    platform.rolls_out(max=5)
    platform.until(AnalysisRun.objects.exists)
    platform.turns(8)
    assert platform.prometheus.asked == []

    def overtake(queries: Sequence[str]) -> Sequence[Answer]:
        Rollout.objects.update(reason_message="changed meanwhile")
        InferenceService.objects.update(changes=1_000_000)
        return platform.prometheus(queries)

    platform.clock.go_on(10)
    outside = Outside(platform.cluster, platform.metrics, platform.clock, ask=overtake)
    assert reconciler.tick(InferenceService.objects.get().pk, outside) is Outcome.OVERTAKEN
    assert platform.measurement()["canary"] is None
    platform.turn(seconds=0.1)
    assert " in 1 of 1 looks" in platform.measurement()["message"]
    assert platform.prometheus.asked == [(CANARY, STABLE)] * 2


def test_nobody_is_asked_within_a_transaction(platform: Measured) -> None:
    depth: list[int] = []

    def note(queries: Sequence[str]) -> Sequence[Answer]:
        depth.append(len(connection.savepoint_ids))
        return [Answer(1.0) for _ in queries]

    platform.rolls_out(max=5)
    platform.until(AnalysisRun.objects.exists)
    outside = len(connection.savepoint_ids)
    platform.clock.go_on(10)
    reconciler.tick(
        InferenceService.objects.get().pk, Outside(platform.cluster, platform.metrics, platform.clock, ask=note)
    )
    assert depth == [outside]


def test_without_a_prometheus_the_policy_is_saved_and_the_rollout_refused(
    platform: Measured, settings: Settings
) -> None:
    settings.PROMETHEUS_URL = ""
    with pytest.raises(Conflict) as raised:
        platform.rolls_out(max=5)
    assert raised.value.message == (
        "policy measured measures queue by queries to Prometheus, and none is configured; set "
        "FAIRLEAD_PROMETHEUS_URL for web and worker, or take a policy without `metrics`"
    )
    assert RolloutPolicy.objects.filter(name="measured").exists()
    assert not Rollout.objects.exists()


def test_a_prometheus_that_is_taken_away_in_a_rollout_is_an_outage(platform: Measured) -> None:
    platform.rolls_out(max=5)
    platform.until(AnalysisRun.objects.exists)
    platform.traffic(1000)
    platform.clock.go_on(10)
    reconciler.tick(InferenceService.objects.get().pk, Outside(platform.cluster, platform.metrics, platform.clock))
    assert "FAIRLEAD_PROMETHEUS_URL is not set, so no Prometheus answers" in platform.reason()[1]
