"""Analysis gate: evaluates a step's counts and an attempt's evidence under the policy's limits. Pure.

The reconciler calls it on every tick. A measurement is Failed as soon as its evidence is clear (`eprocess`), with
however few requests. It is Successful once the canary has had `minRequests` and its numbers are within the limit. In
between the step holds, and past its deadline it is Inconclusive. One unlucky request out of twenty is above a limit of
1 % and proves nothing: such a step waits for more requests.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from common import durations
from deployments.domain.analysis.criterion import Question, Window
from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.ledger import Ledger
from deployments.domain.analysis.evidence.totals import Histogram
from deployments.domain.analysis.measurements.answer_agreement import AnswersAgree
from deployments.domain.analysis.measurements.errors import ErrorIncrease, ErrorLimit
from deployments.domain.analysis.measurements.latency import SlowRequests
from deployments.domain.analysis.measurements.latency_limit import SlowerThan
from deployments.domain.analysis.measurements.metrics import OfPrometheus
from deployments.domain.analysis.measurements.quality import PREFIX, AnswerQuality
from deployments.domain.analysis.measurements.throughput import Throughput
from deployments.domain.analysis.verdict import Finding, Measurement, Verdict
from deployments.domain.comparison.interval import bounds
from deployments.domain.policy import Gate, Policy


@dataclass(frozen=True, slots=True)
class Proof:
    """The attempt's ledger, and the capital from which on evidence is clear."""

    ledger: Ledger
    threshold: float

    def of(self, metric: str, parts: int = 1) -> float:
        """Return the progress of the evidence against the canary, 0 for none, 1 or more for clear.

        Args:
            parts: into so many its measurement's part of alpha is divided.
        """
        return max(0.0, self.ledger.log_capital(metric) / (self.threshold + math.log(parts)))

    @property
    def alpha(self) -> float:
        """Return the part of the policy's alpha for one measurement (`eprocess.threshold`)."""
        return math.exp(1 - self.threshold)


def questions_of(gate: Gate) -> tuple[Question, ...]:
    """Return a gate's criteria; new kinds of measurements (`criterion`) are added here."""
    increase = gate.max_error_increase_percent
    questions: list[Question] = [ErrorLimit(gate.max_error_percent, gate.min_requests, increase is not None)]
    if increase is not None:
        questions += [ErrorIncrease(increase, gate.min_requests, of_clients) for of_clients in (False, True)]
    if gate.max_slow_percent is not None:
        questions.append(SlowRequests(gate.max_slow_percent, gate.latency_quantile, gate.min_requests))
    if gate.comparison is not None:
        questions.append(AnswersAgree(gate.comparison))
    if gate.max_slower_than is not None:
        limit = gate.max_slower_than
        questions.append(SlowerThan(1000 * limit.milliseconds, limit.percent, gate.min_requests))
    if gate.min_throughput_percent is not None:
        questions.append(Throughput(gate.min_throughput_percent, gate.min_requests))
    questions += [OfPrometheus(metric) for metric in gate.metrics]
    if gate.quality is not None:
        questions.append(AnswerQuality(gate.quality))
    return tuple(questions)


def _asked(gate: Gate, window: Window) -> tuple[Question, ...]:
    """Return a gate's criteria, and quality apart for each value of a parameter, as fixed at the first look."""
    questions = questions_of(gate)
    if gate.quality is None or not gate.quality.slices or window.labels is None:
        return questions
    return (*questions, *(AnswerQuality(gate.quality, value) for value in window.labels.values if value))


def threshold_of(policy: Policy) -> float:
    """Return the capital of clear evidence: all measurements of all steps share the policy's alpha."""
    return eprocess.threshold(policy.alpha, _measurements(policy))


def alpha_each(policy: Policy) -> float:
    """Return the part of the policy's alpha for one measurement."""
    return policy.alpha / max(1, _measurements(policy))


def _measurements(policy: Policy) -> int:
    """Return how many measurements have evidence of their own: those of all steps together, and in the background."""
    gates = [step.gate for step in policy.steps if step.gate is not None]
    behind = () if policy.background is None else questions_of(policy.background)
    return len({question.metric for gate in gates for question in questions_of(gate)}) + len(behind)


def edges_of(policy: Policy, stable: Histogram) -> dict[str, float]:
    """Return the edge of slow requests for each quantile in the policy, once stable has had enough requests."""
    edges: dict[str, float] = {}
    for gate in policy.gates:
        if gate.max_slow_percent is not None and stable.total >= gate.min_requests:
            edge = stable.edge_of(gate.latency_quantile)
            if edge is not None:
                edges[quantile_key(gate)] = edge
    return edges


def quantile_key(gate: Gate) -> str:
    """Return the name under which `edges_of` keeps the edge for a gate."""
    return f"{gate.latency_quantile:g}"


def evaluate(gate: Gate | None, window: Window, proof: Proof) -> Finding:
    """Return the finding for the window and the proof; a step without a gate is always Successful."""
    return _about(window.subject, _evaluate(gate, window, proof))


def _about(subject: str, finding: Finding) -> Finding:
    """Return the finding with `subject` in its sentences, which are written for a canary."""

    def said(message: str) -> str:
        return message.replace("the canary", f"the {subject}")

    measurements = tuple(replace(each, message=said(each.message)) for each in finding.measurements)
    return replace(finding, message=said(finding.message), measurements=measurements)


def _evaluate(gate: Gate | None, window: Window, proof: Proof) -> Finding:
    canary, stable = window.canary.requests, window.stable.requests
    if gate is None:
        return Finding(Verdict.SUCCESSFUL, "no analysis at this step", canary, stable)
    measurements = tuple(_measured(question, window, proof) for question in _asked(gate, window))
    verdicts = {measurement.verdict for measurement in measurements}
    if Verdict.FAILED in verdicts:
        return Finding(Verdict.FAILED, _first(measurements, Verdict.FAILED), canary, stable, measurements)
    if canary == 0:
        message = "no request has reached the canary in this step yet"
        return Finding(Verdict.RUNNING, message, canary, stable, measurements)
    if Verdict.RUNNING not in verdicts:
        message = f"all {len(measurements)} measurements are within their limits over {_requests(canary)} of the canary"
        return Finding(Verdict.SUCCESSFUL, message, canary, stable, measurements)
    undecided = _first(measurements, Verdict.RUNNING)
    deadline = gate.quality_deadline if _is_only_quality(measurements) else gate.deadline
    if window.waited is not None and window.waited >= deadline:
        message = f"undecided {durations.render(deadline)} after the first request: {undecided}"
        return Finding(Verdict.INCONCLUSIVE, message, canary, stable, measurements)
    return Finding(Verdict.RUNNING, undecided, canary, stable, measurements)


def _is_only_quality(measurements: Iterable[Measurement]) -> bool:
    """Return whether nothing else is undecided."""
    return all(each.metric.startswith(PREFIX) for each in measurements if each.verdict is Verdict.RUNNING)


def _measured(question: Question, window: Window, proof: Proof) -> Measurement:
    is_divided = isinstance(question, AnswerQuality) and window.labels is not None
    found = proof.of(question.metric, len(window.labels.values) if is_divided and window.labels is not None else 1)
    measurement = question.judge(window, is_clear=found >= 1)
    evidence_percent = max(measurement.evidence_percent, round(100 * min(1.0, found), 1))
    measurement = replace(measurement, evidence_percent=evidence_percent)
    share = question.counted(window)
    if share is None or not share.total:
        return measurement
    # Concurrent requests share their fate: what counts as one in the evidence counts as one here.
    alike = proof.ledger.run_blocks(question.metric)
    low, high = bounds(share.bad / alike, share.total / alike, proof.alpha)
    return replace(measurement, low=round(100 * low, 4), high=round(100 * high, 4))


def _first(measurements: Iterable[Measurement], verdict: Verdict) -> str:
    return next(measurement.message for measurement in measurements if measurement.verdict is verdict)


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"
