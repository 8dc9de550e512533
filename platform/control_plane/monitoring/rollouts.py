"""Metrics of rollouts in progress; the series of a rollout end with it."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from deployments.selectors.rollouts.metrics import RolloutNow

_OF = ["namespace", "service", "rollout"]


def rollout_families() -> tuple[GaugeMetricFamily, ...]:
    """Return the families without samples."""
    return (
        GaugeMetricFamily(
            "fairlead_rollout_info", "1 for a rollout in progress.", labels=[*_OF, "revision", "policy", "phase"]
        ),
        GaugeMetricFamily("fairlead_rollout_step", "Steps that a rollout in progress has done.", labels=_OF),
        GaugeMetricFamily("fairlead_rollout_steps", "Steps of its policy.", labels=_OF),
        GaugeMetricFamily(
            "fairlead_rollout_weight_percent",
            "Share of the requests that its revision should get, and that the gateway was last seen to send.",
            labels=[*_OF, "kind"],
        ),
        GaugeMetricFamily(
            "fairlead_rollout_step_seconds", "Time since the gateway confirmed the step's traffic.", labels=_OF
        ),
        GaugeMetricFamily(
            "fairlead_rollout_waiting_seconds", "Time since its reason began.", labels=[*_OF, "phase", "reason"]
        ),
        GaugeMetricFamily("fairlead_rollout_turn_age_seconds", "Time since the last turn of its service.", labels=_OF),
        GaugeMetricFamily(
            "fairlead_rollout_evidence_percent",
            "Progress of the evidence against the canary by one metric of the step; 100 fails it.",
            labels=[*_OF, "metric", "verdict"],
        ),
    )


def rollout_metrics(rollouts: Iterable[RolloutNow]) -> tuple[Metric, ...]:
    """Return the metrics of rollouts in progress."""
    info, step, steps, weight, step_s, waits_s, turn_s, evidence = families = rollout_families()
    for each in rollouts:
        of = [each.namespace, each.service, str(each.rollout)]
        info.add_metric([*of, each.revision, each.policy, each.phase], 1)
        step.add_metric(of, each.step)
        steps.add_metric(of, each.steps)
        weight.add_metric([*of, "desired"], each.weight)
        if each.confirmed_weight is not None:
            weight.add_metric([*of, "confirmed"], each.confirmed_weight)
        if each.step_s is not None:
            step_s.add_metric(of, each.step_s)
        waits_s.add_metric([*of, each.phase, each.reason], each.waits_s)
        if each.turn_s is not None:
            turn_s.add_metric(of, each.turn_s)
        for judged in each.judged:
            evidence.add_metric([*of, judged.metric, judged.verdict], judged.evidence_percent)
    return families
