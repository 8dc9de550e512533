from dataclasses import replace
from datetime import timedelta

import pytest

from deployments.domain.analysis.criterion import Window
from deployments.domain.analysis.evidence import ledger
from deployments.domain.analysis.evidence.blocks import tally
from deployments.domain.analysis.evidence.totals import Counts, Histogram
from deployments.domain.analysis.gate import Proof, edges_of, evaluate, questions_of, threshold_of
from deployments.domain.analysis.verdict import Finding, Measurement, Verdict
from deployments.domain.policy import Gate, Policy, Step

EDGE = 1000.0
GATE = Gate(
    min_requests=100,
    max_error_percent=1.0,
    max_error_increase_percent=1.0,
    latency_quantile=0.95,
    max_slow_percent=15.0,
    deadline=timedelta(minutes=5),
)
SOON = timedelta(seconds=10)
LATE = timedelta(minutes=5)


def _counts(requests: int, *, failed: int = 0, refused: int = 0, slow: int = 0) -> Counts:
    return Counts(requests, refused, failed, Histogram((EDGE,), (requests - slow, slow)))


GOOD_STABLE = _counts(900, slow=27)


def _window(canary: Counts, stable: Counts = GOOD_STABLE, waited: timedelta | None = SOON) -> Window:
    return Window(canary, stable, EDGE, waited if canary.requests else None, stable_answered=5000)


def _part(counts: Counts, part: float) -> Counts:
    requests, refused, failed = (round(part * n) for n in (counts.requests, counts.client_errors, counts.server_errors))
    return Counts(requests, refused, failed, Histogram((EDGE,), tuple(round(part * n) for n in counts.latency.counts)))


def _judged(gate: Gate, window: Window) -> Finding:
    """Evaluate a window that came in even blocks, one in two seconds, with 5 requests of the canary or more in each."""
    known, blocks = ledger.begin(0.0), max(1, min(40, window.canary.requests // 5))
    for block in range(1, blocks + 1):
        sums = [tally(_part(side, block / blocks), window.edge_us) for side in (window.canary, window.stable)]
        known = ledger.carry_on(known, questions_of(gate), sums[0], sums[1], 2.0 * block)
    return evaluate(gate, window, Proof(known, threshold_of(Policy("p", (Step(10, gate=gate),)))))


def _by_metric(finding: Finding) -> dict[str, Measurement]:
    return {measurement.metric: measurement for measurement in finding.measurements}


@pytest.mark.parametrize(
    ("window", "verdict", "sentence"),
    [
        pytest.param(
            _window(_counts(100, slow=5)),
            Verdict.SUCCESSFUL,
            "all 4 measurements are within their limits over 100 requests of the canary",
            id="enough requests and none failed",
        ),
        pytest.param(
            _window(_counts(99)),
            Verdict.RUNNING,
            "a verdict needs 100 requests, at least 1 more request",
            id="one request too few for a verdict",
        ),
        pytest.param(
            _window(_counts(0)), Verdict.RUNNING, "no request has reached the canary", id="no traffic is Running"
        ),
        pytest.param(
            _window(_counts(20, failed=1)),
            Verdict.RUNNING,
            "1 of 20 requests to the canary failed (5.00 %, limit 1 %); a verdict needs 100 requests, at least 80 more",
            id="one unlucky request out of 20 does not fail a canary",
        ),
        pytest.param(
            _window(_counts(100, failed=2)),
            Verdict.RUNNING,
            "2 of 100 requests to the canary failed (2.00 %, limit 1 %); that is not clear yet, at least 100 more",
            id="above the limit but not clearly: hold for more",
        ),
        pytest.param(
            _window(_counts(100, failed=1)),
            Verdict.SUCCESSFUL,
            "within their limits",
            id="exactly at the limit is within it",
        ),
        pytest.param(
            _window(_counts(40, failed=30)),
            Verdict.FAILED,
            "30 of 40 requests to the canary failed (75.00 %, limit 1 %)",
            id="a clear failure need not wait for minRequests",
        ),
        pytest.param(
            _window(_counts(1000, failed=50), _counts(9000)),
            Verdict.FAILED,
            "50 of 1000 requests to the canary failed (5.00 %, limit 1 %)",
            id="5 % of 1000 requests failed",
        ),
        pytest.param(
            _window(_counts(1000, failed=9), _counts(9000)),
            Verdict.SUCCESSFUL,
            "all 4",
            id="a little worse than stable, within both limits",
        ),
        pytest.param(
            _window(_counts(1000, refused=200), _counts(9000, refused=1800)),
            Verdict.SUCCESSFUL,
            "all 4",
            id="clients err as much with stable: not the canary's fault",
        ),
        pytest.param(
            _window(_counts(1000, refused=200), _counts(9000, refused=90)),
            Verdict.FAILED,
            "200 of 1000 requests to the canary were refused as the client's error (20.00 %) against 90 of 9000",
            id="a canary that refuses what stable took",
        ),
        pytest.param(
            _window(_counts(1000, slow=400)),
            Verdict.FAILED,
            "400 of 1000 requests of the canary took longer than 1 ms (40.0 %, limit 15 %), 27 of 900 of stable",
            id="clearly slower than stable",
        ),
        pytest.param(
            _window(_counts(1000, slow=160), _counts(9000, slow=270)),
            Verdict.RUNNING,
            "160 of 1000 requests of the canary took longer than 1 ms (16.0 %",
            id="a little slower than allowed: not clear yet",
        ),
        pytest.param(
            _window(_counts(1000, slow=400), _counts(9000, slow=3600)),
            Verdict.SUCCESSFUL,
            "all 4",
            id="stable became as slow in the same window: the machine's fault, not the canary's",
        ),
        pytest.param(
            _window(_counts(1000, slow=900), _counts(9000, slow=3600)),
            Verdict.FAILED,
            "limit 50 %",
            id="stable became slower, the canary much more so",
        ),
        pytest.param(
            _window(_counts(200), _counts(0)),
            Verdict.SUCCESSFUL,
            "all 4",
            id="at weight 100 there is no stable to compare with: the absolute limits decide",
        ),
        pytest.param(
            _window(_counts(200, slow=120), _counts(0)),
            Verdict.FAILED,
            "120 of 200 requests of the canary took longer",
            id="at weight 100 the share of slow requests alone decides",
        ),
        pytest.param(
            _window(_counts(99), waited=LATE),
            Verdict.INCONCLUSIVE,
            "undecided 5m after the first request: 0 of 99 requests",
            id="too few requests by the deadline",
        ),
        pytest.param(
            _window(_counts(300, failed=5), waited=LATE),
            Verdict.INCONCLUSIVE,
            "that is not clear yet",
            id="neither good nor clearly bad by the deadline",
        ),
        pytest.param(
            _window(_counts(100), waited=LATE), Verdict.SUCCESSFUL, "all 4", id="good, after the deadline: still good"
        ),
        pytest.param(
            _window(_counts(1000, failed=500), waited=LATE), Verdict.FAILED, "500 of 1000", id="bad, after the deadline"
        ),
        pytest.param(
            replace(_window(_counts(500)), edge_us=None, stable_answered=40),
            Verdict.RUNNING,
            "stable's replicas have answered 40 requests; 100 are needed to fix from them what is slow",
            id="what is slow is not fixed yet",
        ),
        pytest.param(
            replace(_window(_counts(40, failed=30)), edge_us=None),
            Verdict.FAILED,
            "30 of 40",
            id="clear failures do not wait for what is slow to be fixed",
        ),
    ],
)
def test_verdict(window: Window, verdict: Verdict, sentence: str) -> None:
    finding = _judged(GATE, window)
    assert finding.verdict is verdict
    assert sentence in finding.message


def test_every_measurement_says_what_was_measured() -> None:
    measured = _by_metric(_judged(GATE, _window(_counts(200, failed=1, refused=2, slow=8))))
    assert {name: (m.unit, m.canary, m.stable, m.limit, m.verdict.value) for name, m in measured.items()} == {
        "server_errors": ("percent", 0.5, 0.0, 1.0, "Successful"),
        "server_error_increase": ("percentage points", 0.5, 0.0, 1.0, "Successful"),
        "client_error_increase": ("percentage points", 1.0, 0.0, 1.0, "Successful"),
        "slow_requests": ("percent", 4.0, 3.0, 15.0, "Successful"),
    }
    assert measured["server_error_increase"].message == (
        "1 of 200 requests to the canary failed (0.50 %) against 0 of 900 to stable (0.00 %); "
        "the increase may be 1 percentage point"
    )


def test_without_traffic_no_number_is_made_up() -> None:
    finding = _judged(GATE, _window(_counts(0)))
    assert all(m.canary is None and m.verdict is Verdict.RUNNING for m in finding.measurements)


def test_a_step_without_a_gate_is_successful_and_still_counts() -> None:
    nothing = Proof(ledger.begin(0.0), 8.0)
    finding = evaluate(None, _window(_counts(10, failed=10)), nothing)
    assert (finding.verdict, finding.canary_requests, finding.stable_requests) == (Verdict.SUCCESSFUL, 10, 900)
    assert finding.measurements == ()


def test_switched_off_comparisons_are_not_measured() -> None:
    gate = replace(GATE, max_error_increase_percent=None, max_slow_percent=None)
    assert list(_by_metric(_judged(gate, _window(_counts(100))))) == ["server_errors"]


@pytest.mark.parametrize(
    ("counts", "edges"),
    [
        pytest.param((99, 0), {}, id="one request too few to fix anything"),
        pytest.param((98, 1), {}, id="99 in both buckets"),
        pytest.param((95, 5), {"0.95": 500.0}, id="enough"),
    ],
)
def test_what_is_slow_is_fixed_once_stable_had_enough_requests(
    counts: tuple[int, int], edges: dict[str, float]
) -> None:
    policy = Policy("p", (Step(10, gate=GATE), Step(50)))
    assert edges_of(policy, Histogram((500.0,), counts)) == edges


def test_each_quantile_of_a_policy_has_its_own_edge() -> None:
    policy = Policy("p", (Step(10, gate=GATE), Step(50, gate=replace(GATE, latency_quantile=0.5))))
    assert edges_of(policy, Histogram((500.0, 900.0), (60, 40, 0))) == {"0.95": 900.0, "0.5": 500.0}
