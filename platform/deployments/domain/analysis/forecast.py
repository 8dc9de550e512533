"""Rollout forecast: how many requests a policy needs to detect a stated regression (its power). Pure numpy.

For each step and measurement: blocks at the present rate are drawn with the stated regression on the canary's side and
stable's observed traffic on the other, and each bettor's mean log growth is taken over them. The best bettor's growth
fills the capital from its share of 1 to the threshold, so the expected number of blocks is about the distance over the
growth (A. Wald, "Sequential Analysis", 1947). The evidence of earlier steps, which a real rollout carries on, is not
counted. The draws are seeded, so equal inputs give equal results.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

import numpy as np

from common import durations
from deployments.domain.analysis.criterion import Question
from deployments.domain.analysis.evidence import blocks, eprocess
from deployments.domain.analysis.evidence.eprocess import Floats, Shares
from deployments.domain.analysis.evidence.stable_traffic import Traffic
from deployments.domain.analysis.gate import questions_of, threshold_of
from deployments.domain.analysis.measurements.errors import ErrorIncrease, ErrorLimit
from deployments.domain.analysis.measurements.latency import SlowRequests
from deployments.domain.analysis.quality_forecast import label_warnings, labels_needed
from deployments.domain.policy import Gate, Policy, Step, Strategy

_DRAWS = 4000
_TICK_S = 2.0
_MOST_BLOCKS = 10_000
_RATE_ASSUMED = 30.0
_GROUP_ASSUMED = 0.1


@dataclass(frozen=True, slots=True)
class Detection:
    """What one measurement needs to detect the stated regression.

    Attributes:
        regression_percent: of the canary's requests that go wrong.
        requests: expected number of the canary's requests until the verdict Failed, of quality those with a label; None
            where out of reach.
        seconds: how long that takes at the present rate; None where the rate is unknown.
    """

    metric: str
    regression_percent: float
    requests: int | None
    seconds: float | None
    message: str


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step's plan.

    Attributes:
        weight_percent: of the requests, or of the copies; 0 where only a group's requests come.
        warnings: where the step may end before the regression is found.
    """

    step_index: int
    weight_percent: int
    min_requests: int | None
    detections: tuple[Detection, ...] = ()
    warnings: tuple[str, ...] = ()


def plan(policy: Policy, traffic: Traffic) -> tuple[StepPlan, ...]:
    """Return the plan of each step of a policy."""
    threshold = threshold_of(policy)
    plans = []
    for index, step in enumerate(policy.steps):
        share, gate = max(step.weight, step.mirror), step.gate
        if gate is None:
            plans.append(StepPlan(index, share, None, (), ("no analysis at this step: it passes on time alone",)))
            continue
        sizes = _sizes(step, policy.strategy, traffic.per_second)
        detections = tuple(_detections(gate, questions_of(gate), traffic, sizes, threshold))
        warnings = tuple(_warnings(gate, detections))
        by_labels, of_labels = _of_quality(gate, traffic, share, is_paired=step.mirror > 0, threshold=threshold)
        plans.append(StepPlan(index, share, gate.min_requests, detections + by_labels, warnings + of_labels))
    return tuple(plans)


def _of_quality(
    gate: Gate, traffic: Traffic, share: int, *, is_paired: bool, threshold: float
) -> tuple[tuple[Detection, ...], tuple[str, ...]]:
    """Return what a gate on quality finds, with warnings; nothing where its labels are not known."""
    habits = None if gate.quality is None else traffic.labels.get(gate.quality.scorer)
    if gate.quality is None or habits is None:
        return (), ()
    if habits.problem:
        return (), tuple(label_warnings(gate, habits, None, has_deadline=True))
    if share == 100 and not is_paired:
        return (), ("at weight 100 there are no answers of stable, so quality is not judged in this step",)
    parts = math.log(1 + len(habits.values))
    needed = labels_needed(
        gate, habits, share / 100 or _GROUP_ASSUMED, is_paired=is_paired, threshold=threshold + parts
    )
    metric = f"quality:{gate.quality.scorer}"
    detection = Detection(metric, needed.regression_percent, needed.labels, needed.seconds, needed.message)
    return (detection,), tuple(label_warnings(gate, habits, needed, has_deadline=True))


@dataclass(frozen=True, slots=True)
class _Sizes:
    """One block: whole requests of each side, and its duration; None where the rate is unknown."""

    canary: int
    stable: int
    seconds: float | None


def _sizes(step: Step, strategy: Strategy, per_second: float | None) -> _Sizes:
    """Return the requests of a block of the step; how many a group or a preview gets is not known beforehand."""
    part = max(step.weight, step.mirror) / 100
    if part == 0 or strategy is Strategy.BLUE_GREEN:
        part, per_second = _GROUP_ASSUMED, None
    rest = 1.0 if step.mirror else 1 - part
    rate = per_second or _RATE_ASSUMED
    needed = blocks.LEAST_CANARY / (rate * part)
    if rest:
        needed = max(needed, min(blocks.PATIENCE_S, blocks.LEAST_STABLE / (rate * rest)))
    seconds = _TICK_S * max(1, math.ceil(needed / _TICK_S - 1e-9))
    canary, stable = (round(rate * share * seconds) for share in (part, rest))
    return _Sizes(max(blocks.LEAST_CANARY, canary), stable, seconds if per_second else None)


def _detections(
    gate: Gate, questions: Iterable[Question], traffic: Traffic, sizes: _Sizes, threshold: float
) -> Iterable[Detection]:
    for question in questions:
        match question:
            case ErrorLimit() | ErrorIncrease(of_clients=False):
                canary, stable, what = gate.detect.error_percent / 100, traffic.server_errors, "fails"
            case ErrorIncrease():
                stable, what = traffic.client_errors, "refuses"
                canary = min(1.0, stable + gate.detect.error_percent / 100)
            case SlowRequests() if gate.detect.slow_percent is not None:
                stable, what = traffic.slow.get(gate.latency_quantile, 1 - gate.latency_quantile), "is slow on"
                canary = gate.detect.slow_percent / 100
            case _:
                continue
        if isinstance(question, ErrorIncrease) and not sizes.stable:
            continue  # at weight 100 there is no stable traffic to compare with
        found = _blocks(question, canary, stable, sizes, threshold)
        yield _detection(question.metric, 100 * canary, what, found, sizes)


def _blocks(
    question: ErrorLimit | ErrorIncrease | SlowRequests, canary: float, stable: float, sizes: _Sizes, threshold: float
) -> float | None:
    """Return the expected number of blocks until the capital reaches the threshold; None where it hardly grows."""
    random = np.random.default_rng(0)
    sides = [_drawn(random, share, size) for share, size in ((canary, sizes.canary), (stable, sizes.stable))]
    factors, _ = question.factors(sides[0], sides[1])
    growth = eprocess.expected_growth(factors)
    needed = (threshold + math.log(factors.shape[-1] + 1)) / growth if growth > 0 else math.inf
    return needed if needed <= _MOST_BLOCKS else None


def _drawn(random: np.random.Generator, share: float, size: int) -> Shares:
    seen: Floats = random.binomial(size, share, _DRAWS) / max(1, size)
    return Shares(seen, np.full(_DRAWS, float(size)))


def _detection(metric: str, percent: float, what: str, found: float | None, sizes: _Sizes) -> Detection:
    whom = f"a canary that {what} {percent:g} % of its requests"
    if found is None:
        return Detection(metric, percent, None, None, f"{whom} is not found: that is too close to what is allowed")
    whole = max(1, math.ceil(found))
    seconds = None if sizes.seconds is None else whole * sizes.seconds
    message = f"{whom} is failed after about {whole * sizes.canary} of them"
    if seconds is not None:
        message += f", {durations.render(timedelta(seconds=round(seconds)))} at the present rate"
    return Detection(metric, percent, whole * sizes.canary, seconds, message)


def _warnings(gate: Gate, detections: Iterable[Detection]) -> Iterable[str]:
    """Yield warnings that a step may be Successful before the regression would be clear, with the probability."""
    fastest: dict[float, Detection] = {}
    for each in detections:
        best = fastest.get(each.regression_percent)
        if best is None or (each.requests or math.inf) < (best.requests or math.inf):
            fastest[each.regression_percent] = each
    for each in fastest.values():
        limit = gate.max_slow_percent if each.metric == "slow_requests" else gate.max_error_percent
        if limit is None or (each.requests is not None and each.requests <= gate.min_requests):
            continue
        chance = _passes(gate.min_requests, each.regression_percent / 100, limit / 100)
        if each.metric != "client_error_increase":
            yield (
                f"minRequests is {gate.min_requests}, fewer than it takes to fail a canary with "
                f"{each.regression_percent:g} % in {each.metric}; with that many, {100 * chance:.2g} % of such "
                "canaries are seen within the limit and pass this step"
            )


def _passes(requests: int, share: float, limit: float) -> float:
    """Return the probability that a canary with this share is within the limit after so many requests (binomial)."""
    if share >= 1:
        return 1.0 if limit >= 1 else 0.0
    bad = np.arange(math.floor(requests * limit + 1e-9) + 1)
    logs = [math.lgamma(requests + 1) - math.lgamma(k + 1) - math.lgamma(requests - k + 1) for k in bad]
    return float(np.exp(np.array(logs) + bad * math.log(share) + (requests - bad) * math.log1p(-share)).sum())
