"""Celery tasks of the reconciler, retention, jobs and webhooks.

`sweep` finds every service that is due for a tick (`schedule`); `reconcile` is only a hint that one is due sooner.

Sweeps may overlap when a cluster is slow: each service's lease lets one tick in at a time, a sweep that ran long leaves
the rest to the next, and messages that waited too long are dropped. Nothing piles up.

A cluster behind a network may hang, and must not occupy every thread of the workers: one sweep at a time has it, a hint
for one of its services is dropped while a tick there is in progress, and once it is known to be away only an occasional
probe waits for it, while its services' ticks fail at once (`clusters.services.connection.driver_now`).
"""

import logging
import time
from datetime import timedelta
from functools import partial

from celery import shared_task
from django.conf import settings
from django.utils import timezone
from prometheus_client import Histogram

from clusters.models import Cluster
from clusters.services import connection
from clusters.services.cluster_selection import cluster_local_made
from clusters.services.connection import LOCAL
from common.errors import FairleadError, Unavailable
from common.http.full_disk import full_disk
from deployments import hooks
from deployments.reconcile import reconciler, restarts, schedule
from deployments.reconcile.participants import gates, traffic
from deployments.reconcile.participants.metric_queries import Ask, no_prometheus
from deployments.reconcile.reconciler import Outcome, Outside
from deployments.reconcile.service_counters import count_failure
from deployments.services import alias_follow, import_follow, retention
from deployments.services.revisions.gpu_assignment import gpus_due, gpus_note
from deployments.services.revisions.revision_history import revisions_forget
from events.services import delivery
from events.tasks import deliver
from integrations.clusters.base import ClusterDriver
from integrations.clusters.unavailable_driver import away
from integrations.metrics import counters
from integrations.metrics.prometheus import Prometheus
from integrations.outbound import post
from jobs.services.claim import jobs_forget
from jobs.services.hints import send

logger = logging.getLogger(__name__)
RECONCILE_DURATION = Histogram(
    "fairlead_reconcile_duration_seconds",
    "Duration of one reconciler tick of one service, by what became of it.",
    ["outcome"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
)
_BUDGET_S = 10.0
_MAX_DELIVERIES = 20


@shared_task(name="deployments.tasks.reconcile", expires=10)
def reconcile(service_id: int) -> None:
    """Tick one service; once more at once if it was changed meanwhile."""
    cluster = Cluster.objects.filter(services=service_id).first()
    if cluster is None or (cluster.kind != LOCAL and schedule.is_busy(cluster.pk, now=timezone.now())):
        return  # the next sweep turns to it
    try:
        driver = connection.driver_now(cluster, timezone.now())
    except FairleadError:
        return  # the sweep records why
    if _tick(service_id, driver) is Outcome.OVERTAKEN:
        _tick(service_id, driver)


@shared_task(name="deployments.tasks.sweep", expires=2 * settings.RECONCILE_INTERVAL_S)
def sweep() -> None:
    """Tick every active service without a recent tick, and some of the settled ones.

    Clusters behind a network may hang: each is left to a task of its own.
    """
    cluster_local_made(now=timezone.now())
    for cluster_id in Cluster.objects.exclude(kind=LOCAL).values_list("pk", flat=True):
        send(sweep_cluster, cluster_id)
    for cluster in Cluster.objects.filter(kind=LOCAL):
        _sweep(cluster)


@shared_task(name="deployments.tasks.sweep_cluster", expires=2 * settings.RECONCILE_INTERVAL_S)
def sweep_cluster(cluster_id: int) -> None:
    """Tick the services of one cluster, unless another worker does."""
    claim = schedule.sweep_begin(cluster_id, now=timezone.now())
    if claim is None:
        return
    try:
        _sweep(Cluster.objects.get(pk=cluster_id))
    except Cluster.DoesNotExist:
        return
    finally:
        schedule.sweep_end(cluster_id, claim)


@shared_task(name="deployments.tasks.forget", expires=600)
def forget() -> None:
    """Delete events and measurements older than the settings' limits."""
    now = timezone.now()
    events = retention.events_forget(now=now, older_than=settings.RETAIN_EVENTS)
    steps = retention.measurements_forget(now=now, older_than=settings.RETAIN_MEASUREMENTS)
    retention.traffic_forget(now=now, older_than=traffic.KEPT)
    retention.comparisons_forget(now=now, older_than=settings.RETAIN_MEASUREMENTS)
    jobs_forget(now=now)
    if revisions := revisions_forget(now=now):
        logger.info("forgot %s revisions beyond the history limits of their services", revisions)
    if events or steps:
        logger.info("forgot %s old events and the measurements of %s steps of ended rollouts", events, steps)


@shared_task(name="deployments.tasks.ask", expires=60)
def ask(question_id: int) -> None:
    """Call a step webhook, unless it is not due or another worker does."""
    question = gates.question_begin(question_id=question_id, now=timezone.now())
    if question is None:
        return
    status: int | None = None
    try:
        status, answer = post(
            question.url,
            question.body,
            question.headers,
            allowed=settings.EGRESS_ALLOWED_NETWORKS,
            timeout_s=question.timeout_s,
        )
    except Unavailable as error:
        answer = error.message
    gates.question_end(of=question, status=status, answer=answer, now=timezone.now())


@shared_task(name="deployments.tasks.sweep_deliveries", expires=60)
def sweep_deliveries() -> None:
    """Send a hint for due deliveries and webhook calls, and delete old finished deliveries."""
    for question_id in gates.questions_due(now=timezone.now(), limit=_MAX_DELIVERIES):
        send(ask, question_id)
    for delivery_id in delivery.deliveries_due(now=timezone.now(), limit=_MAX_DELIVERIES):
        send(deliver, delivery_id)
    delivery.deliveries_forget(now=timezone.now())


def _tick(service_id: int, driver: ClusterDriver) -> Outcome | None:
    """Tick one service; its errors are logged here and must not delay others."""
    began = time.monotonic()
    outcome = _try_to_tick(service_id, driver)
    RECONCILE_DURATION.labels(outcome or "failed").observe(time.monotonic() - began)
    if outcome is None:
        count_failure(service_id)
    return outcome


def _try_to_tick(service_id: int, driver: ClusterDriver) -> Outcome | None:
    try:
        alias_follow(service_id=service_id, now=timezone.now())
        import_follow(service_id=service_id, now=timezone.now())
        return reconciler.tick(service_id, _outside(driver))
    except Unavailable as error:
        logger.warning("service %s waits for its cluster: %s", service_id, error)
    except FairleadError as error:
        logger.error("service %s cannot be reconciled: %s", service_id, error)
    except Exception as error:
        if full_disk(error) is None:
            logger.exception("the tick of service %s failed", service_id)
    return None


def _outside(driver: ClusterDriver) -> Outside:
    ask: Ask = no_prometheus
    if settings.PROMETHEUS_URL:
        ask = Prometheus(settings.PROMETHEUS_URL, settings.PROMETHEUS_TOKEN, settings.PROMETHEUS_CA).ask
    return Outside(
        driver, partial(counters.collect, page_of=driver.metrics_page), timezone.now, settings.SCALE_DOWN_WINDOW, ask
    )


def _sweep(cluster: Cluster) -> None:
    began = time.monotonic()
    driver, answers = _looked_at(cluster)
    reports_events = answers and schedule.heard(cluster, driver, now=timezone.now())
    if answers:
        hooks.cluster_observed(cluster, driver, timezone.now)
    interval = timedelta(seconds=settings.RECONCILE_INTERVAL_S)
    for service_id in schedule.services_due(
        cluster, now=timezone.now(), interval=interval, reports_events=reports_events
    ):
        if time.monotonic() - began > _BUDGET_S:
            return
        if _tick(service_id, driver) is None and answers and cluster.kind != LOCAL:
            # Of many services the first one that finds the cluster away is the last one that waits for it.
            cluster.refresh_from_db()
            driver, answers = _looked_at(cluster)


def _looked_at(cluster: Cluster) -> tuple[ClusterDriver, bool]:
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
        nodes = driver.inventory(with_nodes=with_gpus)
        restarts.note_components(cluster_id=cluster.pk, nodes=nodes, now=now)
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
