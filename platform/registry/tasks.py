"""Registry tasks: checks of versions, imports of files, the sweeps for due ones, and garbage collection of files.

A check asks the runtime two questions, `inspect` then `profile`, in separate processes where models run, with no
transaction open: children of one process for a batch of versions where the cluster can do so. Its end is written by
`version_checks.check_end`; a worker that dies in between leaves claims that expire.
"""

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from common.errors import FairleadError
from integrations.clusters.base import Checker, ChecksMany, Job, JobKind, JobResult, Resources
from jobs.services import hints
from jobs.services.claim import due
from jobs.services.claim_renewal import LEASE, RENEW_EVERY_S, held
from jobs.services.run_claim import is_stopping, run
from registry import hooks
from registry.domain.inspection import NotAccepted, at_least, read_inspection, read_profile, with_batch_size
from registry.domain.version_lifecycle import Accepted, Outcome, Unchecked
from registry.selectors import rows_of_earlier_versions, versions_to_check
from registry.services import imports
from registry.services.version_checks import (
    MOST_IN_A_BATCH,
    Claim,
    check_end,
    check_renew,
    checks_at_once,
    checks_begin,
    checks_release,
    checks_renew,
)
from registry.storage import delete_unused

logger = logging.getLogger(__name__)
_RENEW_EVERY_S = RENEW_EVERY_S
_BATCH_S = 10.0
"""Time after which a batch begins no further check: so long may versions of other teams wait for their turn."""


@shared_task(name="registry.tasks.sweep", expires=60)
def sweep() -> None:
    """Send a hint for the versions that have waited longest for their check."""
    now = timezone.now()
    for version_id in versions_to_check(now=now, limit=checks_at_once(now)):
        hints.send(check_version, version_id)


@shared_task(name="registry.tasks.delete_unused_files", expires=600)
def delete_unused_files() -> None:
    """Delete model files without a version."""
    for each in delete_unused(now=timezone.now()):
        logger.info("deleted the model files %s, which no version had", each.digest)
    imports.imports_forget(now=timezone.now(), older_than=settings.RETAIN_EVENTS)


@shared_task(name="registry.tasks.check_version", expires=60)
def check_version(version_id: int) -> None:
    """Check whether the version can be served, unless it is claimed or not due, and with it others that wait."""
    batch = checks_begin(version_id=version_id, now=timezone.now(), lease=LEASE, most=_most_in_a_batch())
    if not batch:
        return
    with held(
        f"hold-check-{version_id}",
        lambda: checks_renew(claim_id=batch[0].id, now=timezone.now(), lease=LEASE),
        every_s=_RENEW_EVERY_S,
    ):
        _check(batch)
    sweep()


def _most_in_a_batch() -> int:
    """Return how many versions one process checks on the cluster that checks models."""
    try:
        return MOST_IN_A_BATCH if isinstance(hooks.job_driver(timezone.now())[0], ChecksMany) else 1
    except FairleadError:  # the check itself says so
        return 1


def _check(batch: Sequence[Claim]) -> None:
    """Check the versions one after the other; those left when the time is over, or the worker ends, are released."""
    begun = time.monotonic()
    with _checker() as checker:
        for place, claim in enumerate(batch):
            is_over = time.monotonic() - begun > _BATCH_S or (checker is not None and not checker.runs)
            if place and (is_over or is_stopping()):
                checks_release(claims=batch[place:], now=timezone.now())
                return
            if place and not check_renew(claim=claim, now=timezone.now(), lease=LEASE):
                continue  # it was deleted, or the lease expired and another worker has it
            outcome = _ask(claim, checker if claim.attempt == 1 else None)
            logger.info("the check of version id %s ended: %s", claim.version_id, type(outcome).__name__)
            if not check_end(claim=claim, outcome=outcome, now=timezone.now()):
                logger.warning(
                    "the check of version id %s ended after its claim was lost; its outcome is dropped",
                    claim.version_id,
                )


def _checker() -> AbstractContextManager[Checker | None]:
    try:
        driver = hooks.job_driver(timezone.now())[0]
    except FairleadError:
        return nullcontext()
    return driver.checker(float(settings.MODEL_CHECK_TIMEOUT_S)) if isinstance(driver, ChecksMany) else nullcontext()


def _ask(claim: Claim, checker: Checker | None) -> Outcome:
    """Return the runtime's result on the version's files.

    Args:
        checker: of the batch; None for a check by itself: one that is repeated may have ended its worker.
    """
    try:
        signature, platform = read_inspection(_run(JobKind.INSPECT, claim, checker=checker))
        profile = read_profile(_run(JobKind.PROFILE, claim, checker=checker))
        profile = at_least(profile, rows_of_earlier_versions(claim.version_id))
        signature = with_batch_size(signature, profile)
        elsewhere = (
            ()
            if claim.resources.accelerator
            else tuple(each for found in hooks.measured_on(timezone.now()) for each in found)
        )
        if on := [_measured_on(resource, claim) for resource in elsewhere]:
            profile["on"] = on
    except NotAccepted as answer:
        return answer.outcome
    except FairleadError as error:
        return Unchecked(error.message)
    except Exception as error:  # a bug of ours must not leave the version claimed and silent
        logger.exception("the check of version id %s failed", claim.version_id)
        return Unchecked(f"the check failed with {type(error).__name__}: {error}")
    return Accepted(signature.as_json(), platform, profile)


def _measured_on(resource: str, claim: Claim) -> dict[str, object]:
    """Return the measurements on a GPU or slice, or the problem, which keeps no version from being READY."""
    try:
        found = read_profile(_run(JobKind.PROFILE, claim, Resources(accelerator=resource)))
    except NotAccepted as answer:
        return {"resource": resource, "problem": answer.outcome.reason}
    except FairleadError as error:
        return {"resource": resource, "problem": error.message}
    return {"resource": resource, **found}


def _run(kind: JobKind, claim: Claim, resources: Resources | None = None, checker: Checker | None = None) -> JobResult:
    job = Job(
        kind=kind,
        artifact_uri=claim.artifact_uri,
        timeout_s=float(settings.MODEL_CHECK_TIMEOUT_S),
        artifact_digest=claim.digest,
        artifact_origin=claim.origin,
        resources=resources or claim.resources,
    )
    result = checker.run(job) if checker is not None else None
    return result if result is not None else hooks.job_driver(timezone.now())[0].run(job)


@shared_task(name="registry.tasks.sweep_imports", expires=60)
def sweep_imports() -> None:
    """Send a hint for the imports that have waited longest."""
    for import_id in due(imports.IMPORT, now=timezone.now(), limit=imports.MAX_CONCURRENT):
        hints.send(import_model, import_id)


@shared_task(name="registry.tasks.import_model", expires=60)
def import_model(import_id: int) -> None:
    """Fetch the import's files and register them, unless it is claimed or not due."""
    row = run(imports.IMPORT, import_id, clock=timezone.now)
    if row is None:
        return
    if row.version_id is not None:
        hints.send(check_version, row.version_id)
    sweep_imports()
