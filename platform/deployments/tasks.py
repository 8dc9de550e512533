"""Celery tasks of the reconciler, retention, jobs and webhooks.

`sweep` finds every service that is due for a tick (`schedule`); `reconcile` is only a hint that one is due sooner.

Sweeps may overlap when a cluster is slow: each service's lease lets one tick in at a time, a sweep that ran long leaves
the rest to the next, and messages that waited too long are dropped. Nothing piles up.

A cluster behind a network may hang, and must not occupy every thread of the workers: one sweep at a time has it, a hint
for one of its services is dropped while a tick there is in progress, and once it is known to be away only an occasional
probe waits for it, while its services' ticks fail at once (`clusters.services.connection.driver_now`).
"""

import logging

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from clusters.models import Cluster
from clusters.services import connection
from clusters.services.cluster_selection import cluster_local_made
from clusters.services.connection import LOCAL
from common.errors import FairleadError, Unavailable
from deployments.reconcile import cluster_claim, renewal, schedule
from deployments.reconcile.participants import gates, traffic
from deployments.reconcile.reconciler import Outcome
from deployments.services import retention
from deployments.services.model_copies import copier
from deployments.services.revisions.revision_history import revisions_forget
from deployments.turns.sweep import sweep as sweep_of
from deployments.turns.sweep import turn
from events.services import delivery
from events.tasks import deliver
from integrations.outbound import post
from jobs.services.claim import jobs_forget
from jobs.services.hints import send

logger = logging.getLogger(__name__)
_MAX_DELIVERIES = 20


@shared_task(name="deployments.tasks.reconcile", expires=10)
def reconcile(service_id: int) -> None:
    """Tick one service; once more at once if it was changed meanwhile."""
    cluster = Cluster.objects.filter(services=service_id).first()
    if cluster is None or (cluster.kind != LOCAL and schedule.is_busy(cluster, now=timezone.now())):
        return  # its controller, or the next sweep, turns to it
    try:
        driver = connection.driver_now(cluster, timezone.now())
    except FairleadError:
        return  # the sweep records why
    if turn(service_id, driver) is Outcome.OVERTAKEN:
        turn(service_id, driver)


@shared_task(name="deployments.tasks.sweep", expires=2 * settings.RECONCILE_INTERVAL_S)
def sweep() -> None:
    """Tick every active service without a recent tick, and some of the settled ones.

    Clusters behind a network may hang: each is left to a task of its own.
    """
    cluster_local_made(now=timezone.now())
    for cluster_id in cluster_claim.clusters_free(now=timezone.now()):
        send(sweep_cluster, cluster_id)
    for cluster in Cluster.objects.filter(kind=LOCAL):
        sweep_of(cluster)


@shared_task(name="deployments.tasks.sweep_cluster", expires=2 * settings.RECONCILE_INTERVAL_S)
def sweep_cluster(cluster_id: int) -> None:
    """Tick the services of one cluster, unless another worker does."""
    claim = cluster_claim.take(cluster_id, now=timezone.now())
    if claim is None:
        return
    try:
        with renewal.of_process.renewed(lambda: claim.renew(timezone.now())):
            sweep_of(Cluster.objects.get(pk=cluster_id))
    except Cluster.DoesNotExist:
        return
    finally:
        claim.release()


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


@shared_task(name="deployments.tasks.copy_models", expires=10)
def copy_models() -> None:
    """Upload deployed models to the buckets from which clusters' pods take them."""
    copier.copy(now=timezone.now())
