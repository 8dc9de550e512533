"""What a step's counts say about the canary under the policy's gate. Pure; the reconciler asks on every tick.

A measurement is Failed as soon as its evidence is clear, with however few requests. It is Successful once the canary
has had `minRequests` and what was seen is within the limit. In between the step holds, and past its deadline it is
Inconclusive. One unlucky request out of twenty is above a limit of 1 % and proves nothing: such a step waits for more
requests.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from common import durations
from deployments.analysis.confidence import DEFAULT_TEST, TESTS, Share, SharesTest
from deployments.analysis.totals import Counts, Histogram
from deployments.analysis.verdict import Finding, Measurement, Verdict
from deployments.policy import Gate, Policy

PERCENT = "percent"
POINTS = "percentage points"


@dataclass(frozen=True, slots=True)
class Window:
    """What was seen in one step.

    Attributes:
        edge_us: slower than that is slow; fixed from stable, None until stable had enough requests for it.
        waited: since the canary's first request in the step; None without one.
        stable_answered: by stable's replicas since they run, from which the edge is fixed.
        subject: what sentences call the canary, which may be a shadow.
    """

    canary: Counts
    stable: Counts
    edge_us: float | None
    waited: timedelta | None
    stable_answered: int = 0
    subject: str = "canary"


def edges_of(policy: Policy, stable: Histogram) -> dict[str, float]:
    """Return the edge that fixes what is slow for each quantile in the policy, once stable has had enough requests."""
    edges: dict[str, float] = {}
    for gate in (step.gate for step in policy.steps):
        if gate is not None and gate.max_slow_percent is not None and stable.total >= gate.min_requests:
            edge = stable.edge_of(gate.latency_quantile)
            if edge is not None:
                edges[quantile_key(gate)] = edge
    return edges


def quantile_key(gate: Gate) -> str:
    """Return under which name `edges_of` keeps the edge for a gate."""
    return f"{gate.latency_quantile:g}"


def evaluate(gate: Gate | None, window: Window, test: SharesTest = TESTS[DEFAULT_TEST]) -> Finding:
    """Return what the window says; a step without a gate is Successful whatever was seen."""
    return _about(window.subject, _evaluate(gate, window, test))


def _about(subject: str, finding: Finding) -> Finding:
    """Return the finding with its sentences, which are written for a canary, about what is on trial."""

    def said(message: str) -> str:
        return message.replace("the canary", f"the {subject}")

    measurements = tuple(replace(each, message=said(each.message)) for each in finding.measurements)
    return replace(finding, message=said(finding.message), measurements=measurements)


def _evaluate(gate: Gate | None, window: Window, test: SharesTest) -> Finding:
    canary, stable = window.canary.requests, window.stable.requests
    if gate is None:
        return Finding(Verdict.SUCCESSFUL, f"no analysis at this step ({_requests(canary)})", canary, stable)
    measurements = tuple(_measure(gate, window, test))
    verdicts = {measurement.verdict for measurement in measurements}
    if canary == 0:
        return Finding(
            Verdict.RUNNING, "no request has reached the canary in this step yet", canary, stable, measurements
        )
    if Verdict.FAILED in verdicts:
        return Finding(Verdict.FAILED, _first(measurements, Verdict.FAILED), canary, stable, measurements)
    if Verdict.RUNNING not in verdicts:
        message = f"all {len(measurements)} measurements are within their limits over {_requests(canary)} of the canary"
        return Finding(Verdict.SUCCESSFUL, message, canary, stable, measurements)
    undecided = _first(measurements, Verdict.RUNNING)
    if window.waited is not None and window.waited >= gate.deadline:
        message = f"undecided {durations.render(gate.deadline)} after the first request: {undecided}"
        return Finding(Verdict.INCONCLUSIVE, message, canary, stable, measurements)
    return Finding(Verdict.RUNNING, undecided, canary, stable, measurements)


def _measure(gate: Gate, window: Window, test: SharesTest) -> Iterator[Measurement]:
    canary, stable = window.canary, window.stable
    failed = Share(canary.server_errors, canary.requests)
    stable_failed = Share(stable.server_errors, stable.requests)
    yield _absolute(gate, failed, stable_failed, test)
    if gate.max_error_increase_percent is not None:
        yield _increase("server_error_increase", "failed", gate=gate, canary=failed, stable=stable_failed, test=test)
        yield _increase(
            "client_error_increase",
            "were refused as the client's error",
            gate=gate,
            canary=Share(canary.client_errors, canary.requests),
            stable=Share(stable.client_errors, stable.requests),
            test=test,
        )
    if gate.max_slow_percent is not None:
        yield _latency(gate, gate.max_slow_percent, window, test)


def _absolute(gate: Gate, canary: Share, stable: Share, test: SharesTest) -> Measurement:
    limit = gate.max_error_percent
    verdict = _verdict(
        clear=test.clearly_above(canary, limit / 100), within=_percent(canary) <= limit, share=canary, gate=gate
    )
    message = f"{_of(canary)} requests to the canary failed ({_percent(canary):.2f} %, limit {limit:g} %)"
    return Measurement(
        "server_errors",
        PERCENT,
        _value(canary),
        _value(stable),
        limit,
        verdict,
        message + _outlook(verdict, canary, gate),
    )


def _increase(metric: str, what: str, *, gate: Gate, canary: Share, stable: Share, test: SharesTest) -> Measurement:
    limit = gate.max_error_increase_percent or 0.0
    if stable.total == 0 and canary.total:
        # At weight 100 there is no stable traffic; the absolute limits still hold.
        message = "stable had no requests in this step, so there was nothing to compare the canary's errors with"
        return Measurement(metric, POINTS, _value(canary), None, limit, Verdict.SUCCESSFUL, message)
    increase = _percent(canary) - _percent(stable)
    verdict = _verdict(
        clear=test.clearly_above_stable(canary, stable, limit / 100), within=increase <= limit, share=canary, gate=gate
    )
    message = (
        f"{_of(canary)} requests to the canary {what} ({_percent(canary):.2f} %) against {_of(stable)} to stable "
        f"({_percent(stable):.2f} %); the increase may be {limit:g} percentage points"
    )
    return Measurement(
        metric, POINTS, _value(canary), _value(stable), limit, verdict, message + _outlook(verdict, canary, gate)
    )


def _latency(gate: Gate, limit: float, window: Window, test: SharesTest) -> Measurement:
    """Judge the share of slow requests; where stable became slower in the same window, as much slower is allowed."""
    edge = window.edge_us
    if edge is None:
        message = (
            f"stable's replicas have answered {_requests(window.stable_answered)}; "
            f"{gate.min_requests} are needed to fix from them what is slow"
        )
        return Measurement("slow_requests", PERCENT, None, None, limit, Verdict.RUNNING, message)
    canary = Share(window.canary.latency.slower_than(edge), window.canary.latency.total)
    stable = Share(window.stable.latency.slower_than(edge), window.stable.latency.total)
    headroom = limit - 100 * (1 - gate.latency_quantile)
    allowed = min(100.0, max(limit, _percent(stable) + headroom))
    clear = test.clearly_above(canary, limit / 100) and (
        stable.total == 0 or test.clearly_above_stable(canary, stable, headroom / 100)
    )
    verdict = _verdict(clear=clear, within=_percent(canary) <= allowed, share=canary, gate=gate)
    message = (
        f"{_of(canary)} requests of the canary took longer than {_duration(edge)} ({_percent(canary):.1f} %, limit "
        f"{allowed:.3g} %), {_of(stable)} of stable ({_percent(stable):.1f} %)"
    )
    return Measurement(
        "slow_requests",
        PERCENT,
        _value(canary),
        _value(stable),
        round(allowed, 6),
        verdict,
        message + _outlook(verdict, canary, gate),
    )


def _verdict(*, clear: bool, within: bool, share: Share, gate: Gate) -> Verdict:
    if clear:
        return Verdict.FAILED
    return Verdict.SUCCESSFUL if within and share.total >= gate.min_requests else Verdict.RUNNING


def _outlook(verdict: Verdict, share: Share, gate: Gate) -> str:
    if verdict is not Verdict.RUNNING:
        return ""
    if share.total < gate.min_requests:
        return f"; a verdict needs {gate.min_requests} requests"
    return "; that is not clear yet, more requests are needed"


def _first(measurements: tuple[Measurement, ...], verdict: Verdict) -> str:
    return next(measurement.message for measurement in measurements if measurement.verdict is verdict)


def _percent(share: Share) -> float:
    return 100 * share.fraction


def _value(share: Share) -> float | None:
    return round(_percent(share), 4) if share.total else None


def _of(share: Share) -> str:
    return f"{share.bad} of {share.total}"


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _duration(edge_us: float) -> str:
    return f"{edge_us / 1000:g} ms" if edge_us >= 1000 else f"{edge_us:g} µs"
