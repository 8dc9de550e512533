"""Prometheus collector of the whole control plane, for web's metrics page; reads database and broker per scrape."""

import logging
from collections.abc import Iterator
from typing import Any

from celery import current_app
from django.db import DatabaseError
from django.utils import timezone
from kombu.exceptions import KombuError
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from deployments.selectors.traffic.metrics import rollout_phases, service_phases, sweep_lag

logger = logging.getLogger(__name__)


class ControlPlaneCollector(Collector):
    """Reads at every scrape; unavailable values are left out, and `fairlead_database_up` says so."""

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return the families without reading anything, so that registering the collector makes no query."""
        yield GaugeMetricFamily("fairlead_database_up", "1 while the database answers, else 0.")
        yield GaugeMetricFamily("fairlead_services", "Services by phase.", labels=["phase"])
        yield GaugeMetricFamily("fairlead_rollouts", "Rollouts by phase, finished ones included.", labels=["phase"])
        yield GaugeMetricFamily("fairlead_sweep_lag_seconds", "Time since the longest waiting service had its tick.")
        yield GaugeMetricFamily("fairlead_queue_depth", "Tasks that wait in the broker.", labels=["queue"])

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the metrics from database and broker."""
        database_up, services, rollouts, lag, depth = self.describe()
        try:
            for family, counts in ((services, service_phases()), (rollouts, rollout_phases())):
                for phase, count in counts.items():
                    family.add_metric([phase], count)
            lag.add_metric([], sweep_lag(now=timezone.now()).total_seconds())
        except DatabaseError as error:
            logger.warning("the metrics page has nothing of the database: %s", error)
            database_up.add_metric([], 0)
            yield database_up
        else:
            database_up.add_metric([], 1)
            yield from (database_up, services, rollouts, lag)
        queue = str(current_app.conf.task_default_queue)
        waiting = _waiting(queue)
        if waiting is not None:
            depth.add_metric([queue], waiting)
            yield depth


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
