"""The check of a registered version, the sweep that finds versions whose check is due, and the tidying of files.

A check asks the runtime twice, `inspect` then `profile`, in processes of their own where models run, with no
transaction open. Its end is written by `checks.check_end`; a worker that dies in between leaves a claim that runs out.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.db import DatabaseError, connection
from django.utils import timezone

from common import hints
from common.errors import FairleadError
from integrations.clusters import driver_for
from integrations.clusters.base import Job, JobKind, JobResult
from registry.checks import MAX_CONCURRENT, Claim, check_begin, check_end, check_renew
from registry.inspection import NotAccepted, read_inspection, read_profile
from registry.lifecycle import Accepted, Outcome, Unchecked
from registry.selectors import versions_to_check
from registry.storage import delete_unused

logger = logging.getLogger(__name__)
_LEASE = timedelta(seconds=20)
_RENEW_EVERY_S = 5.0


@shared_task
def sweep() -> None:
    """Send a hint for the versions that have waited longest for their check."""
    for version_id in versions_to_check(now=timezone.now(), limit=MAX_CONCURRENT):
        hints.send(check_version, version_id)


@shared_task
def delete_unused_files() -> None:
    """Delete model files that no version has."""
    for digest in delete_unused(now=timezone.now()):
        logger.info("deleted the model files %s, which no version had", digest)


@shared_task
def check_version(version_id: int) -> None:
    """Find out whether the version can be served, unless somebody else is at it or it is not due."""
    claim = check_begin(version_id=version_id, now=timezone.now(), lease=_LEASE)
    if claim is None:
        return
    with _held(claim):
        outcome = _ask(claim)
    logger.info("the check of version id %s ended: %s", version_id, type(outcome).__name__)
    if not check_end(claim=claim, outcome=outcome, now=timezone.now()):
        logger.warning("the check of version id %s ended after its claim was lost; its outcome is dropped", version_id)
    sweep()


def _ask(claim: Claim) -> Outcome:
    """Return what the runtime says about the version's files."""
    try:
        signature, platform = read_inspection(_run(JobKind.INSPECT, claim))
        profile = read_profile(_run(JobKind.PROFILE, claim))
    except NotAccepted as answer:
        return answer.outcome
    except FairleadError as error:
        return Unchecked(error.message)
    except Exception as error:  # a fault of ours must not leave the version claimed and silent
        logger.exception("the check of version id %s failed", claim.version_id)
        return Unchecked(f"the check failed with {type(error).__name__}: {error}")
    return Accepted(signature.as_json(), platform, profile)


def _run(kind: JobKind, claim: Claim) -> JobResult:
    driver = driver_for("local", cluster_folder=settings.CLUSTER_FOLDER)
    return driver.run(Job(kind=kind, artifact_uri=claim.artifact_uri, timeout_s=float(settings.MODEL_CHECK_TIMEOUT_S)))


@contextmanager
def _held(claim: Claim) -> Iterator[None]:
    """Renew the claim meanwhile, from a thread; the lease is short, so a dead worker's check is soon begun anew."""
    done = threading.Event()
    thread = threading.Thread(
        target=_renew_until, args=(claim, done), name=f"hold-check-{claim.version_id}", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _renew_until(claim: Claim, done: threading.Event) -> None:
    try:
        while not done.wait(_RENEW_EVERY_S):
            try:
                check_renew(claim=claim, now=timezone.now(), lease=_LEASE)
            except DatabaseError:
                logger.warning("the claim on version id %s was not renewed", claim.version_id, exc_info=True)
    finally:
        connection.close()
