"""Prometheus collector of the whole control plane, for web's metrics page; reads database and broker per scrape."""

import logging
from collections.abc import Iterator
from typing import Any

from celery import current_app
from django.db import DatabaseError
from django.utils import timezone
from kombu.exceptions import KombuError
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from accounts.selectors.audit_sinks import sink_states
from control_plane.monitoring.clusters import cluster_families, cluster_metrics
from control_plane.monitoring.fleet import fleet_families, fleet_metrics
from control_plane.monitoring.objectives import objective_families, objective_metrics
from control_plane.monitoring.rollouts import rollout_families, rollout_metrics
from deployments.selectors.rollouts.metrics import rollouts_now
from deployments.selectors.traffic.metrics import rollout_phases, service_objectives, service_phases, sweep_lag
from feedback.selectors.drift import drift_alarms
from usage.selectors import last_read
from usage.selectors.metrics import budget_percents, usage_counters

logger = logging.getLogger(__name__)


class ControlPlaneCollector(Collector):
    """Reads at every scrape; unavailable values are left out, and `fairlead_database_up` says so."""

    def describe(self) -> Iterator[Metric]:
        """Return the families without reading anything, so that registering the collector makes no query."""
        yield from _gauges()
        yield from cluster_families()
        yield from rollout_families()
        yield from fleet_families()
        yield from objective_families()
        yield from _sink_families()
        yield from _usage_families()
        yield _drift_family()

    def collect(self) -> Iterator[Metric]:
        """Return the metrics from database and broker."""
        database_up, services, rollouts, lag, depth = _gauges()
        try:
            for family, counts in ((services, service_phases()), (rollouts, rollout_phases())):
                for phase, count in counts.items():
                    family.add_metric([phase], count)
            lag.add_metric([], sweep_lag(now=timezone.now()).total_seconds())
            of_clusters = cluster_metrics(now=timezone.now())
            of_rollouts = rollout_metrics(rollouts_now(now=timezone.now()))
            of_fleet = fleet_metrics()
            objectives = objective_metrics(service_objectives())
            usage = (*_sinks(), *_usage(), _drift())
        except DatabaseError as error:
            logger.warning("the metrics page has nothing of the database: %s", error)
            database_up.add_metric([], 0)
            yield database_up
        else:
            database_up.add_metric([], 1)
            of_services = (*of_clusters, *of_rollouts, *of_fleet, *objectives)
            yield from (database_up, services, rollouts, lag, *of_services, *usage)
        queue = str(current_app.conf.task_default_queue)
        waiting = _waiting(queue)
        if waiting is not None:
            depth.add_metric([queue], waiting)
            yield depth


def _gauges() -> Iterator[GaugeMetricFamily]:
    yield GaugeMetricFamily("fairlead_database_up", "1 while the database answers, else 0.")
    yield GaugeMetricFamily("fairlead_services", "Services by phase.", labels=["phase"])
    yield GaugeMetricFamily("fairlead_rollouts", "Rollouts by phase, finished ones included.", labels=["phase"])
    yield GaugeMetricFamily("fairlead_sweep_lag_seconds", "Time since the longest waiting service had its tick.")
    yield GaugeMetricFamily("fairlead_queue_depth", "Tasks that wait in the broker.", labels=["queue"])


def _sink_families() -> tuple[GaugeMetricFamily, GaugeMetricFamily]:
    return (
        GaugeMetricFamily(
            "fairlead_audit_sink_waiting_entries", "Chained audit entries that a sink has not taken.", labels=["sink"]
        ),
        GaugeMetricFamily(
            "fairlead_audit_sink_lag_seconds",
            "Time since the oldest audit entry that a sink has not taken was chained.",
            labels=["sink"],
        ),
    )


def _sinks() -> tuple[Metric, ...]:
    """Return the metrics of the audit log's sinks; empty families where none is configured."""
    waiting, lag = families = _sink_families()
    for sink in sink_states(now=timezone.now()):
        waiting.add_metric([sink.name], sink.waiting)
        lag.add_metric([sink.name], sink.lag.total_seconds())
    return families


def _drift_family() -> GaugeMetricFamily:
    return GaugeMetricFamily(
        "fairlead_drift_alarms",
        "Features of a service's inputs and answers in which drift was detected and that no one has accepted.",
        labels=["namespace", "service", "team"],
    )


def _drift() -> GaugeMetricFamily:
    family = _drift_family()
    for each in drift_alarms():
        family.add_metric([each.namespace, each.service, each.team], each.features)
    return family


def _usage_families() -> tuple[CounterMetricFamily | GaugeMetricFamily, ...]:
    labels = ["namespace", "service", "team"]
    month = "since the month began (UTC), by the team of the caller's key."
    return (
        CounterMetricFamily("fairlead_usage_requests", f"Requests {month}", labels=labels),
        CounterMetricFamily("fairlead_usage_errors", f"Requests that failed, {month}", labels=labels),
        CounterMetricFamily("fairlead_usage_rows", f"Rows of requests {month}", labels=labels),
        CounterMetricFamily(
            "fairlead_usage_model_seconds", f"Time that replicas worked on requests {month}", labels=labels
        ),
        CounterMetricFamily(
            "fairlead_usage_lines", "Lines of the gateway's access log that were read.", labels=["result"]
        ),
        CounterMetricFamily("fairlead_usage_dropped_bytes", "Bytes of the access log that were deleted unread."),
        GaugeMetricFamily(
            "fairlead_budget_used_percent",
            "Share of the budget of a team, a key or a service that was used: 80, or 100.",
            labels=["team", "key", "namespace", "service", "measure"],
        ),
    )


def _usage() -> tuple[Metric, ...]:
    """Return the metrics of usage from the database."""
    now = timezone.now()
    requests, errors, rows, seconds, lines, dropped, budgets = families = _usage_families()
    for each in usage_counters(now=now):
        labels = [each.namespace, each.service, each.team]
        requests.add_metric(labels, each.requests)
        errors.add_metric(labels, each.errors)
        rows.add_metric(labels, each.rows)
        seconds.add_metric(labels, each.model_seconds)
    if (reading := last_read()) is not None:
        lines.add_metric(["counted"], reading.lines)
        lines.add_metric(["skipped"], reading.bad)
        dropped.add_metric([], reading.dropped_bytes)
    for of_budget, percent in budget_percents(now=now).items():
        budgets.add_metric(of_budget, percent)
    return families


def _waiting(queue: str) -> int | None:
    """Return the number of tasks in a queue, None where the broker is down."""
    try:
        with current_app.connection_for_read() as connection:
            connection.ensure_connection(max_retries=1, timeout=1)
            channel: Any = connection.default_channel
            return int(channel.queue_declare(queue, durable=True, auto_delete=False).message_count)
    except (KombuError, OSError) as error:
        logger.warning("the metrics page has nothing of the broker: %s", error)
        return None
