from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from benchmarks.analysis.rollouts import Bases, simulate
from benchmarks.analysis.traffic import independent, steps_of
from deployments.domain.analysis.evidence.stable_traffic import Traffic, traffic_of
from deployments.domain.analysis.forecast import Detection, plan
from deployments.domain.policy import Detect, Gate, Policy, Step, Strategy
from integrations.clusters.base import HeaderMatch, MatchKind, Sample

BUSY = Traffic(per_second=30.0, seconds=600.0, server_errors=0.004, client_errors=0.02, slow={0.95: 0.04})


GATE = Gate()
GROUP = HeaderMatch("x-group", MatchKind.EXACT, ("beta",))


def _policy(*weights: int, gate: Gate | None = GATE) -> Policy:
    return Policy("p", tuple(Step(weight, timedelta(seconds=10), gate=gate) for weight in weights))


def _by_metric(policy: Policy, traffic: Traffic = BUSY) -> dict[str, Detection]:
    [step] = plan(policy, traffic)
    return {each.metric: each for each in step.detections}


@pytest.mark.parametrize("weight", [10, 25])
@pytest.mark.parametrize(
    ("metric", "detect", "bases"),
    [
        pytest.param("server_errors", Detect(20.0, 30.0), Bases(worse_errors=0.2), id="a fifth fails"),
        pytest.param("server_errors", Detect(5.0, 30.0), Bases(worse_errors=0.05), id="a twentieth fails"),
        pytest.param("slow_requests", Detect(5.0, 50.0), Bases(worse_slow=0.48), id="half are slow"),
    ],
)
def test_the_plan_tells_about_as_many_requests_as_simulated_rollouts_need(
    weight: int, metric: str, detect: Detect, bases: Bases
) -> None:
    found = _by_metric(_policy(weight, gate=Gate(detect=detect)))[metric]
    sizes = steps_of(np.random.default_rng(1), 120, 200, weights=(weight,))
    needed = float(simulate(independent, bases, runs=200, blocks=120, sizes=sizes).requests.mean())
    assert found.requests is not None
    assert 0.6 * needed <= found.requests <= 1.6 * needed
    assert found.seconds == pytest.approx(found.requests / (30.0 * weight / 100), rel=0.05)


def test_a_worse_regression_takes_fewer_requests() -> None:
    needed = [_by_metric(_policy(10, gate=Gate(detect=Detect(percent)))) for percent in (5.0, 10.0, 20.0, 100.0)]
    requests = [each["server_errors"].requests or 0 for each in needed]
    assert requests == sorted(requests, reverse=True)
    assert 0 < requests[-1] < 60


def test_without_a_rate_there_are_requests_but_no_times() -> None:
    found = _by_metric(_policy(10), Traffic())["server_errors"]
    assert found.requests is not None
    assert found.seconds is None
    assert "at the present rate" not in found.message


def test_what_is_hardly_worse_than_allowed_is_said_to_be_out_of_reach() -> None:
    found = _by_metric(_policy(10, gate=Gate(max_error_percent=5.0, detect=Detect(5.2))))["server_errors"]
    assert (found.requests, found.seconds) == (None, None)
    assert (
        found.message == "a canary that fails 5.2 % of its requests is not found: that is too close to what is allowed"
    )


@pytest.mark.parametrize(
    ("min_requests", "warned"),
    [pytest.param(100, True, id="too few"), pytest.param(5000, False, id="enough")],
)
def test_a_step_that_asks_for_fewer_requests_than_the_regression_needs_is_named(
    min_requests: int, warned: bool
) -> None:
    [step] = plan(_policy(10, gate=Gate(min_requests=min_requests, max_slow_percent=None)), BUSY)
    said = (
        "minRequests is 100, fewer than it takes to fail a canary with 5 % in server_errors; with that many, 3.7 % of "
        "such canaries are seen within the limit and pass this step"
    )
    assert step.warnings == ((said,) if warned else ())


def test_a_step_without_a_gate_finds_nothing_and_says_so() -> None:
    [step] = plan(_policy(10, gate=None), BUSY)
    assert (step.detections, step.warnings) == ((), ("no analysis at this step: it passes on time alone",))


def test_at_weight_100_nothing_is_compared() -> None:
    assert sorted(_by_metric(_policy(100))) == ["server_errors", "slow_requests"]


@pytest.mark.parametrize(
    ("policy", "has_time"),
    [
        pytest.param(Policy("p", (Step(mirror=20, gate=GATE),)), True, id="copies"),
        pytest.param(Policy("p", (Step(match=(GROUP,), gate=GATE),)), False, id="a group, whose size nobody knows"),
        pytest.param(Policy("p", (Step(100, gate=GATE),), Strategy.BLUE_GREEN), False, id="a preview"),
    ],
)
def test_other_steps_have_a_plan_with_times_where_the_rate_is_known(policy: Policy, has_time: bool) -> None:
    found = _by_metric(policy)
    assert sorted(found) == ["client_error_increase", "server_error_increase", "server_errors", "slow_requests"]
    assert all((each.seconds is not None) is has_time for each in found.values())
    assert all(each.requests is not None for each in found.values())


def test_traffic_is_what_the_gateway_and_the_replicas_counted_of_stable() -> None:
    samples = [
        Sample("gateway", "digits-1", 1000.0, requests=600, client_errors=6, server_errors=3),
        Sample("gateway", "digits-2", 1000.0, requests=999, client_errors=0, server_errors=0),
        Sample("digits-1-0", "digits-1", 900.0, 600, 0, 0, latency_edges_us=(1e3, 1e4), latency_counts=(564, 30, 6)),
    ]
    found = traffic_of(samples, "digits-1", _policy(10), 1060.0)
    assert found == Traffic(10.0, 60.0, 0.005, 0.01, {0.95: 0.01})
    pods = [
        replace(sample, source=name, started_at=at, replaces_gateway=True)
        for name, at, sample in (("pod-a", 1000.0, samples[0]), ("pod-b", 1030.0, samples[0]))
    ]
    found = traffic_of([*pods, samples[2]], "digits-1", _policy(10), 1060.0)
    assert found == Traffic(30.0, 60.0, 0.005, 0.01, {0.95: 0.01}), "where the gateway does not count, its replicas"
    assert traffic_of([], "digits-1", _policy(10), 1060.0) == Traffic()
    assert traffic_of(samples[:1], "digits-1", _policy(10), 1001.0) == Traffic(), "just begun"
