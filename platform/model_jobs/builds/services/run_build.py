"""Runs builds: a job where models run, whose files are uploaded and become a version. Called by tasks."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.utils import timezone

from integrations.clusters.base import ClusterDriver
from jobs.services.claim_renewal import LEASE
from jobs.services.run_claim import Attempt, make
from model_jobs.builds.domain.order import progress_in, read_report
from model_jobs.builds.services.builds import build_begin, build_broke_off, build_fail, build_put_back, build_renew
from model_jobs.builds.services.result import build_end, build_take
from registry.storage import store_folder

logger = logging.getLogger(__name__)


def build_make(build_id: int, driver_of: Callable[[int], ClusterDriver]) -> int | None:
    """Run the build, unless it is claimed or not due, and return the id of the resulting version.

    Args:
        driver_of: takes a cluster's id.
    """
    claim = build_begin(build_id=build_id, now=timezone.now(), lease=LEASE)
    if claim is None:
        return None
    progress: dict[str, Any] = {}
    version_id: int | None = None

    def take(folder: Path) -> None:
        build_take(result_id=claim.id, artifact=store_folder(folder, owner=f"build-{claim.build_id}"))

    def work(go_on: Callable[[], None]) -> None:
        nonlocal version_id

        def note(line: str) -> None:
            nonlocal progress
            progress = progress_in(line) or progress
            go_on()

        report = read_report(driver_of(claim.cluster_id).run(claim.job, note, take))
        version = build_end(claim=claim, report=report, now=timezone.now())
        version_id = None if version is None else version.pk
        logger.info("build %s ended: %s", build_id, version or "no version came of it")

    attempt = Attempt(
        f"build {build_id}",
        renew=lambda: build_renew(claim=claim, progress=progress, now=timezone.now(), lease=LEASE),
        put_back=lambda: build_put_back(claim=claim, now=timezone.now()),
        fail=lambda reason: build_fail(claim=claim, reason=reason, now=timezone.now()),
        broke_off=lambda reason: build_broke_off(claim=claim, reason=reason, now=timezone.now()),
    )
    make(attempt, work)
    return version_id
