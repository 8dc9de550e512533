"""Tasks of builds, tunings and trials: one job each, and the sweeps that find which are due."""

from celery import shared_task
from django.utils import timezone

from clusters.models import Cluster
from clusters.services.connection import driver_now
from integrations.clusters.base import ClusterDriver
from jobs.services.claim import due
from jobs.services.hints import send
from jobs.services.run_claim import run
from model_jobs.builds.services import BUILD
from model_jobs.trials.services import TRIAL
from model_jobs.tunings.services import TUNING
from registry.tasks import check_version

_MAX_HINTS = 20
"""Of one sweep; each cluster has limits of its own, which claims enforce."""


def driver_of(cluster_id: int) -> ClusterDriver:
    """Return the driver of a cluster, or one that says at once that it is away."""
    return driver_now(Cluster.objects.get(pk=cluster_id), timezone.now())


@shared_task(name="deployments.tasks.tune", expires=60)
def tune(tuning_id: int) -> None:
    """Search for the best configuration of a version, unless somebody else is at it."""
    run(TUNING, tuning_id, driver_of, clock=timezone.now)
    sweep_tunings()


@shared_task(name="deployments.tasks.sweep_tunings", expires=60)
def sweep_tunings() -> None:
    """Send a hint for the tunings that have waited longest."""
    for tuning_id in due(TUNING, now=timezone.now(), limit=_MAX_HINTS):
        send(tune, tuning_id)


@shared_task(name="deployments.tasks.build", expires=60)
def build(build_id: int) -> None:
    """Build a version of another, unless somebody else is at it; the new one is checked then."""
    built = run(BUILD, build_id, driver_of, clock=timezone.now)
    if built is not None and built.version_id is not None:
        send(check_version, built.version_id)
    sweep_builds()


@shared_task(name="deployments.tasks.sweep_builds", expires=60)
def sweep_builds() -> None:
    """Send a hint for the builds that have waited longest."""
    for build_id in due(BUILD, now=timezone.now(), limit=_MAX_HINTS):
        send(build, build_id)


@shared_task(name="deployments.tasks.try_version", expires=60)
def try_version(trial_id: int) -> None:
    """Have a request answered by a version, unless somebody else is at it."""
    run(TRIAL, trial_id, driver_of, clock=timezone.now)
    sweep_trials()


@shared_task(name="deployments.tasks.sweep_trials", expires=60)
def sweep_trials() -> None:
    """Send a hint for the trials that have waited longest."""
    for trial_id in due(TRIAL, now=timezone.now(), limit=_MAX_HINTS):
        send(try_version, trial_id)
