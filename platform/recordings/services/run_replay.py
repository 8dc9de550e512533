"""Runs replays: sends every recorded request again and compares the responses. Called by tasks, outside transactions.

Requests are sent in their order, one at a time: a stateful model gets them as it got them from clients.
"""

import logging
from collections.abc import Callable

from django.utils import timezone

from deployments.domain.comparison.pairing import Pair
from deployments.domain.comparison.report import Report
from deployments.reconcile.participants.comparison import with_pair
from integrations.clusters.base import ClusterDriver
from jobs.services.claim_renewal import LEASE
from jobs.services.run_claim import Attempt, make
from recordings.reconcile import payload_files
from recordings.services.replays import (
    ReplayClaim,
    replay_begin,
    replay_broke_off,
    replay_end,
    replay_fail,
    replay_put_back,
    replay_renew,
)

logger = logging.getLogger(__name__)


def replay_make(replay_id: int, driver_of: Callable[[int], ClusterDriver]) -> None:
    """Run the replay, unless it is claimed or not due; `driver_of` takes a cluster's id."""
    claim = replay_begin(replay_id=replay_id, now=timezone.now(), lease=LEASE)
    if claim is None:
        return
    done = 0

    def work(go_on: Callable[[], None]) -> None:
        def note(count: int) -> None:
            nonlocal done
            done = count
            go_on()

        report = _answered(claim, driver_of(claim.cluster_id), note)
        ended = replay_end(claim=claim, report=report, done=done, now=timezone.now())
        logger.info("replay %s ended%s", replay_id, "" if ended else " after its claim was lost")

    attempt = Attempt(
        f"replay {replay_id}",
        renew=lambda: replay_renew(claim=claim, done=done, now=timezone.now(), lease=LEASE),
        put_back=lambda: replay_put_back(claim=claim, now=timezone.now()),
        fail=lambda reason: replay_fail(claim=claim, reason=reason, now=timezone.now()),
        broke_off=lambda reason: replay_broke_off(claim=claim, reason=reason, now=timezone.now()),
    )
    make(attempt, work)


def _answered(claim: ReplayClaim, driver: ClusterDriver, note: Callable[[int], None]) -> Report:
    report, done = Report(), 0
    with driver.replay(claim.candidate) as answer:
        for recorded in payload_files.read(claim.recording_id, length=claim.length):
            note(done)
            report = with_pair(report, Pair(recorded, answer(recorded)), claim.terms)
            done += 1
        note(done)
    return report
