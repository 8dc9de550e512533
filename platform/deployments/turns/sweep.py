"""Sweep of one cluster: a look at the cluster itself, then a turn to each of its services that is due.

Called by tasks, one turn after the other, and by the `controller`, which has many turns at once.
"""

import logging
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial

from django.conf import settings
from django.utils import timezone
from prometheus_client import Histogram

from clusters.models import Cluster
from clusters.services import connection
from clusters.services.connection import LOCAL
from clusters.services.prometheus import prometheus_of
from common.errors import FairleadError, Unavailable
from common.http.full_disk import full_disk
from deployments import hooks
from deployments.reconcile import reconciler, restarts, schedule
from deployments.reconcile.memory import Memory
from deployments.reconcile.participants.metric_queries import NOT_CONFIGURED
from deployments.reconcile.reconciler import Outcome, Outside
from deployments.reconcile.service_counters import count_failure
from deployments.reconcile.turn import Metrics
from deployments.services import model_follow
from deployments.services.revisions.gpu_assignment import gpus_due, gpus_note
from integrations.clusters.base import ClusterDriver
from integrations.clusters.unavailable_driver import away
from integrations.metrics import counters
from integrations.metrics.prometheus import Answer

logger = logging.getLogger(__name__)
RECONCILE_DURATION = Histogram(
    "fairlead_reconcile_duration_seconds",
    "Duration of one reconciler tick of one service, by what became of it.",
    ["outcome"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
_BUDGET_S = 10.0


def turn(service_id: int, driver: ClusterDriver, memory: Memory | None = None) -> Outcome | None:
    """Tick one service; its errors are logged here and must not delay others.

    Args:
        memory: of a process that has the next turns too.
    """
    began = time.monotonic()
    outcome = _try(service_id, driver, memory)
    RECONCILE_DURATION.labels(outcome or "failed").observe(time.monotonic() - began)
    if outcome is None:
        count_failure(service_id)
    return outcome


def _try(service_id: int, driver: ClusterDriver, memory: Memory | None) -> Outcome | None:
    try:
        if memory is None or not memory.follows_nothing(service_id):
            model_follow(service_id=service_id, now=timezone.now())
        return reconciler.tick(service_id, _outside(service_id, driver, memory))
    except Unavailable as error:
        logger.warning("service %s waits for its cluster: %s", service_id, error)
    except FairleadError as error:
        logger.error("service %s cannot be reconciled: %s", service_id, error)
    except Exception as error:
        if full_disk(error) is None:
            logger.exception("the tick of service %s failed", service_id)
    return None


def _outside(service_id: int, driver: ClusterDriver, memory: Memory | None) -> Outside:
    ask = partial(_ask_prometheus, service_id)
    return Outside(driver, metrics_by(driver), timezone.now, settings.SCALE_DOWN_WINDOW, ask, memory)


def metrics_by(driver: ClusterDriver) -> Metrics:
    """Return what reads the counters of observed replicas, by their cluster's driver."""
    return partial(counters.collect, page_of=driver.metrics_page)


def _ask_prometheus(service_id: int, queries: Sequence[str]) -> Sequence[Answer]:
    """Return the answers of the Prometheus of the service's cluster."""
    prometheus = prometheus_of(Cluster.objects.get(services=service_id))
    if prometheus is None:
        raise Unavailable(NOT_CONFIGURED)
    return prometheus.ask(queries)


def sweep(cluster: Cluster) -> None:
    began = time.monotonic()
    driver, answers = looked_at(cluster)
    reports_events = answers and schedule.heard(cluster, driver, now=timezone.now())
    if answers:
        hooks.cluster_observed(cluster, driver, timezone.now)
    interval = timedelta(seconds=settings.RECONCILE_INTERVAL_S)
    for service_id in schedule.services_due(
        cluster, now=timezone.now(), interval=interval, reports_events=reports_events
    ):
        if time.monotonic() - began > _BUDGET_S:
            return
        if turn(service_id, driver) is None and answers and cluster.kind != LOCAL:
            # Of many services the first one that finds the cluster away is the last one that waits for it.
            cluster.refresh_from_db()
            driver, answers = looked_at(cluster)


def looked_at(cluster: Cluster) -> tuple[ClusterDriver, bool]:
    """Return the cluster's driver after a probe of the cluster, or one that fails at once, and which of the two."""
    now = timezone.now()
    if cluster.kind != LOCAL and connection.is_away(cluster, now):
        return away(cluster.problem), False
    try:
        driver = connection.driver_of(cluster)
    except FairleadError as error:
        return _silent(cluster, error), False
    try:
        with_gpus = gpus_due(cluster, now)
        token = connection.exec_token_times(cluster)
        nodes = driver.inventory(with_nodes=with_gpus)
        restarts.note_look(cluster, nodes, now=now, exec_token=token)
        if with_gpus:
            gpus_note(cluster_id=cluster.pk, nodes=nodes, now=now)
    except Unavailable as error:
        return _silent(cluster, error), False
    except FairleadError as error:
        logger.warning("the parts of cluster %s cannot be read: %s", cluster.name, error)
        restarts.note_refusal(cluster_id=cluster.pk, problem=error.message, now=now)
    return driver, True


def _silent(cluster: Cluster, error: FairleadError) -> ClusterDriver:
    logger.warning("cluster %s cannot be read: %s", cluster.name, error)
    restarts.note_silence(cluster_id=cluster.pk, problem=error.message, now=timezone.now())
    return away(error.message)
