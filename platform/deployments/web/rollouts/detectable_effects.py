"""Detectable effects: regressions that a rollout's present step could find, for its page. Pure."""

import math
from collections.abc import Mapping

from deployments.domain.analysis.evidence.labelled import Habits
from deployments.domain.analysis.evidence.stable_traffic import Traffic
from deployments.domain.analysis.forecast import Detection, plan
from deployments.domain.policy import Policy
from deployments.views.shapes import AnalysisRunView


def asks_labels(run: AnalysisRunView, policy: Policy) -> bool:
    """Return whether the run's step has a gate on quality."""
    index = run.step_index
    gate = None if index is None or index >= len(policy.steps) else policy.steps[index].gate
    return gate is not None and gate.quality is not None


def foreseen_of(
    run: AnalysisRunView | None, policy: Policy, labels: Mapping[str, Habits] | None = None
) -> tuple[str, ...]:
    """Return a sentence for each regression, by the measurement that finds it first; empty without a running analysis.

    Args:
        run: the present step's, whose share of stable's errors is the plan's input.
        labels: by scorer, what is known of stable's labels; quality is left out without.
    """
    index = None if run is None or run.finished_at is not None or not run.has_gate else run.step_index
    if run is None or index is None or index >= len(policy.steps):
        return ()
    stable = {each.metric: (each.stable or 0.0) / 100 for each in run.measurements}
    traffic = Traffic(
        server_errors=stable.get("server_errors", 0.0),
        client_errors=stable.get("client_error_increase", 0.0),
        labels=labels or {},
    )
    first: dict[tuple[str, float], Detection] = {}
    for each in plan(policy, traffic)[index].detections:
        regression = (each.metric.split("_")[0], each.regression_percent)
        if regression not in first or _requests(each) < _requests(first[regression]):
            first[regression] = each
    return tuple(each.message for each in first.values())


def _requests(detection: Detection) -> float:
    return math.inf if detection.requests is None else detection.requests
