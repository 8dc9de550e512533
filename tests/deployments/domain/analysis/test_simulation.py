"""Whole rollouts under simulated traffic with the default gate: what is good passes, what is bad is caught."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence import ledger
from deployments.domain.analysis.evidence.blocks import tally
from deployments.domain.analysis.evidence.ledger import Ledger
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.domain.analysis.gate import Proof, edges_of, evaluate, quantile_key, questions_of, threshold_of
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Phase
from deployments.domain.policy import Gate, Policy, Step
from deployments.domain.rollout import CanarySeen, Observation, advance, start

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(seconds=2)
REQUESTS_PER_TICK = 60
POLICY = Policy("default", tuple(Step(weight, timedelta(seconds=10), gate=Gate()) for weight in (10, 25, 50)))
EDGES = tuple(float(edge) for edge in (100, 200, 300, 500, 750, 1000, 1500, 2000, 3000, 5000))
RUNS = 60


@dataclass(frozen=True)
class Behaviour:
    """A revision: shares of requests that fail and are refused, and its latency's median (log-normal)."""

    fails: float = 0.0
    refuses: float = 0.0
    median_us: float = 400.0
    slow_share: float = 0.0

    def serve(self, requests: int, random: np.random.Generator) -> Counts:
        latency = random.lognormal(np.log(self.median_us), 0.4, requests)
        latency[random.random(requests) < self.slow_share] *= 20
        counts = np.bincount(np.searchsorted(EDGES, latency), minlength=len(EDGES) + 1)
        failed, refused = random.binomial(requests, [self.fails, self.refuses])
        return Counts(requests, int(refused), int(failed), Histogram(EDGES, tuple(int(count) for count in counts)))


def _plus(a: Counts, b: Counts) -> Counts:
    return Counts(
        a.requests + b.requests,
        a.client_errors + b.client_errors,
        a.server_errors + b.server_errors,
        a.latency.plus(b.latency),
    )


def _judged(known: Ledger, gate: Gate, window: Window, at: float) -> tuple[Ledger, Finding]:
    sums = (tally(window.canary, window.edge_us), tally(window.stable, window.edge_us))
    known = ledger.carry_on(known, questions_of(gate), *sums, at)
    return known, evaluate(gate, window, Proof(known, threshold_of(POLICY)))


def _roll_out(stable: Behaviour, canary: Behaviour, seed: int) -> tuple[Phase, int]:
    """Return how the rollout ended and how many requests had failed or were slow because of the canary by then."""
    random = np.random.default_rng(seed)
    edges = edges_of(POLICY, stable.serve(2000, random).latency)
    state, now = start(POLICY, NOW), NOW
    step, waited, counts, touched = -1, timedelta(0), (Counts(), Counts()), 0
    known = ledger.begin(NOW.timestamp())
    for _ in range(400):
        now += TICK
        finding = None
        if state.step is not None and state.phase is not Phase.PENDING and state.confirmed_at is not None:
            if state.step_index != step:
                step, waited, counts = state.step_index, timedelta(0), (Counts(), Counts())
                known = ledger.begin((now - TICK).timestamp(), known)
            to_canary = int(random.binomial(REQUESTS_PER_TICK, state.portion.weight / 100))
            touched += to_canary
            counts = (
                _plus(counts[0], canary.serve(to_canary, random)),
                _plus(counts[1], stable.serve(REQUESTS_PER_TICK - to_canary, random)),
            )
            waited += TICK
            assert state.step.gate is not None
            window = Window(*counts, edges.get(quantile_key(state.step.gate)), waited, 2000)
            known, finding = _judged(known, state.step.gate, window, now.timestamp())
        state = advance(state, Observation(CanarySeen(1, 1), True, finding=finding), now)
        if state.phase.is_finished or state.phase is Phase.PAUSED:
            break
    return state.phase, touched


GOOD = Behaviour()


@pytest.mark.parametrize(
    ("stable", "canary"),
    [
        pytest.param(GOOD, GOOD, id="the same as stable, without any failure"),
        pytest.param(Behaviour(fails=0.002), Behaviour(fails=0.002), id="both fail twice in a thousand"),
        pytest.param(Behaviour(refuses=0.05), Behaviour(refuses=0.05), id="clients err in 5 % of their requests"),
        pytest.param(GOOD, Behaviour(median_us=430.0), id="a little slower"),
        pytest.param(Behaviour(slow_share=0.02), Behaviour(slow_share=0.03), id="both slow at times"),
    ],
)
def test_good_canaries_are_never_rolled_back(stable: Behaviour, canary: Behaviour) -> None:
    ends = [_roll_out(stable, canary, seed)[0] for seed in range(RUNS)]
    assert ends.count(Phase.DEGRADED) == 0
    assert ends.count(Phase.HEALTHY) >= 0.95 * RUNS, "nor held up"


@pytest.mark.parametrize(
    ("canary", "touched_at_most"),
    [
        pytest.param(Behaviour(fails=1.0), 40, id="always fails"),
        pytest.param(Behaviour(fails=0.2), 150, id="fails on a fifth of its inputs"),
        pytest.param(Behaviour(fails=0.1), 400, id="fails on a tenth of its inputs"),
        pytest.param(Behaviour(refuses=0.2), 500, id="refuses a fifth of what stable took"),
        pytest.param(Behaviour(median_us=4000.0), 60, id="ten times slower"),
        pytest.param(Behaviour(slow_share=0.5), 200, id="slow on half of its inputs"),
        pytest.param(Behaviour(slow_share=0.3), 900, id="slow on three tenths of its inputs"),
    ],
)
def test_bad_canaries_are_caught_before_many_requests_met_them(canary: Behaviour, touched_at_most: int) -> None:
    ends = [_roll_out(GOOD, canary, seed) for seed in range(RUNS)]
    assert [phase for phase, _ in ends if phase is not Phase.DEGRADED] == []
    assert np.median([touched for _, touched in ends]) <= touched_at_most


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(replace(GOOD, median_us=700.0), id="slower by three quarters"),
        pytest.param(replace(GOOD, fails=0.3), id="three requests in ten fail"),
        pytest.param(replace(GOOD, fails=1.0, refuses=0.0), id="nothing works at all"),
    ],
)
def test_a_bad_time_of_what_both_depend_on_is_not_blamed_on_the_canary(moment: Behaviour) -> None:
    """Both become worse together for a minute after the edge was fixed, and are well again for another."""
    random, gate = np.random.default_rng(1), Gate()
    edge = edges_of(POLICY, GOOD.serve(2000, random).latency)["0.95"]
    known, counts, verdicts = ledger.begin(0.0), (Counts(), Counts()), set()
    for tick in range(60):
        now = moment if tick < 30 else GOOD
        counts = (_plus(counts[0], now.serve(6, random)), _plus(counts[1], now.serve(54, random)))
        window = Window(*counts, edge, timedelta(seconds=2 * tick), 2000)
        known, finding = _judged(known, gate, window, 2.0 * (tick + 1))
        verdicts.add(finding.verdict)
    assert Verdict.FAILED not in verdicts
    assert verdicts == {Verdict.RUNNING} or moment.fails == 0
    if moment.fails:
        assert "points to something that both depend on, so the step holds" in finding.message
