"""Runs trials: a job where models run, for one request. Called by tasks, with no transaction open."""

import logging
from collections.abc import Callable

from django.utils import timezone

from integrations.clusters.base import ClusterDriver
from jobs.services.claim_renewal import LEASE
from jobs.services.run_claim import Attempt, make
from model_jobs.trials.domain.order import STARTING, read_report, stage_in
from model_jobs.trials.services.trials import (
    trial_begin,
    trial_broke_off,
    trial_end,
    trial_fail,
    trial_put_back,
    trial_renew,
)

logger = logging.getLogger(__name__)


def trial_make(trial_id: int, driver_of: Callable[[int], ClusterDriver]) -> None:
    """Run the trial, unless it is claimed or not due; `driver_of` takes a cluster's id."""
    claim = trial_begin(trial_id=trial_id, now=timezone.now(), lease=LEASE)
    if claim is None:
        return
    stage = STARTING

    def work(go_on: Callable[[], None]) -> None:
        def note(line: str) -> None:
            nonlocal stage
            stage = stage_in(line) or stage
            go_on()

        result = driver_of(claim.cluster_id).run(claim.job, note)
        tried = read_report(result, model=claim.model, number=claim.number)
        ended = trial_end(claim=claim, tried=tried, now=timezone.now())
        logger.info("trial %s ended%s", trial_id, "" if ended else " after its claim was lost")

    attempt = Attempt(
        f"trial {trial_id}",
        renew=lambda: trial_renew(claim=claim, stage=stage, now=timezone.now(), lease=LEASE),
        put_back=lambda: trial_put_back(claim=claim, now=timezone.now()),
        fail=lambda reason: trial_fail(claim=claim, reason=reason, now=timezone.now()),
        broke_off=lambda reason: trial_broke_off(claim=claim, reason=reason, now=timezone.now()),
    )
    make(attempt, work)
