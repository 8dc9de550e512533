"""Runs tunings: a job where models run, with progress. Called by tasks, with no transaction open."""

import logging
from collections.abc import Callable
from typing import Any

from django.utils import timezone

from integrations.clusters.base import ClusterDriver
from jobs.services.claim_renewal import LEASE
from jobs.services.run_claim import Attempt, make
from model_jobs.tunings.domain.order import progress_in, read_report
from model_jobs.tunings.services.tunings import (
    tuning_begin,
    tuning_broke_off,
    tuning_end,
    tuning_fail,
    tuning_put_back,
    tuning_renew,
)

logger = logging.getLogger(__name__)


def tuning_make(tuning_id: int, driver_of: Callable[[int], ClusterDriver]) -> None:
    """Run the tuning, unless it is claimed or not due; `driver_of` takes a cluster's id."""
    claim = tuning_begin(tuning_id=tuning_id, now=timezone.now(), lease=LEASE)
    if claim is None:
        return
    progress: dict[str, Any] = {}

    def work(go_on: Callable[[], None]) -> None:
        def note(line: str) -> None:
            nonlocal progress
            progress = progress_in(line) or progress
            go_on()

        report = read_report(driver_of(claim.cluster_id).run(claim.job, note))
        ended = tuning_end(claim=claim, report=report, now=timezone.now())
        logger.info("tuning %s ended%s", tuning_id, "" if ended else " after its claim was lost")

    attempt = Attempt(
        f"tuning {tuning_id}",
        renew=lambda: tuning_renew(claim=claim, progress=progress, now=timezone.now(), lease=LEASE),
        put_back=lambda: tuning_put_back(claim=claim, now=timezone.now()),
        fail=lambda reason: tuning_fail(claim=claim, reason=reason, now=timezone.now()),
        broke_off=lambda reason: tuning_broke_off(claim=claim, reason=reason, now=timezone.now()),
    )
    make(attempt, work)
