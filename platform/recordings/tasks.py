"""Tasks of recordings and replays."""

import logging

from celery import shared_task
from django.utils import timezone

from clusters.models import Cluster
from clusters.services.connection import driver_now
from integrations.clusters.base import ClusterDriver
from jobs.services.claim import due
from jobs.services.hints import send
from jobs.services.run_claim import run
from recordings.services.recordings import recordings_forget
from recordings.services.replays import MAX_CONCURRENT, REPLAY

logger = logging.getLogger(__name__)


def driver_of(cluster_id: int) -> ClusterDriver:
    """Return the driver of a cluster, or one that says at once that it is away."""
    return driver_now(Cluster.objects.get(pk=cluster_id), timezone.now())


@shared_task(name="deployments.tasks.forget_recordings", expires=60)
def forget_recordings() -> None:
    """Delete recordings whose time is over, and the files of those that were deleted."""
    if files := recordings_forget(now=timezone.now()):
        logger.info("deleted the files of %s recordings", files)


@shared_task(name="deployments.tasks.replay", expires=60)
def replay(replay_id: int) -> None:
    """Have a recording answered again, unless somebody else is at it."""
    run(REPLAY, replay_id, driver_of, clock=timezone.now)
    sweep_replays()


@shared_task(name="deployments.tasks.sweep_replays", expires=60)
def sweep_replays() -> None:
    """Send a hint for the replays that have waited longest."""
    for replay_id in due(REPLAY, now=timezone.now(), limit=MAX_CONCURRENT):
        send(replay, replay_id)
