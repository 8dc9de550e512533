"""Metrics of services' objectives, which the rules of burn-rate alerts join with the metrics of requests."""

from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily, Metric

from deployments.domain.error_budget import AVAILABILITY, LATENCY
from deployments.selectors.traffic.metrics import ServiceObjectives

_OF = ["namespace", "service", "team"]


def objective_families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    """Return the families without samples."""
    return (
        GaugeMetricFamily(
            "fairlead_service_objective_ratio",
            "Share of requests that must succeed, or of answers that must be quick enough.",
            labels=[*_OF, "objective"],
        ),
        GaugeMetricFamily(
            "fairlead_service_objective_latency_seconds", "Longest time of an answer that is quick enough.", labels=_OF
        ),
    )


def objective_metrics(services: Iterable[ServiceObjectives]) -> tuple[Metric, ...]:
    """Return the metrics of the services with objectives."""
    ratio, longest = families = objective_families()
    for each in services:
        of, objectives = [each.namespace, each.service, each.team], each.objectives
        if objectives.availability is not None:
            ratio.add_metric([*of, AVAILABILITY], _ratio(objectives.availability))
        if objectives.latency is not None:
            ratio.add_metric([*of, LATENCY], _ratio(objectives.latency.percent))
            longest.add_metric(of, objectives.latency.within_ms / 1000)
    return families


def _ratio(percent: float) -> float:
    """Return a share without the rounding error of the division: 99.9 is 0.999."""
    return round(percent / 100, 9)
