"""Makes replays: every recorded request is answered once more and compared. Called by tasks, with no transaction open.

Requests are answered in their order, one at a time: a model that keeps state between requests gets them as it got them
from clients. An attempt whose worker ends is made again by another, from the first request.
"""

import logging
import threading
from collections.abc import Callable

from celery.signals import worker_shutting_down
from django.utils import timezone

from common.errors import FairleadError, InvalidInput
from deployments.comparing import with_pair
from deployments.comparison.joining import Pair
from deployments.comparison.report import Report
from deployments.payloads import files
from deployments.services.replays import (
    ReplayClaim,
    replay_begin,
    replay_broke_off,
    replay_end,
    replay_fail,
    replay_put_back,
    replay_renew,
)
from integrations.clusters.base import ClusterDriver
from registry.holding import LEASE, held

logger = logging.getLogger(__name__)
_PROGRESS_EVERY_S = 1.0
_stopping = threading.Event()


class _LetGo(BaseException):
    """Another worker has the replay, or the service is gone, or this worker is to end: nothing is left to do here."""


@worker_shutting_down.connect
def stop_replays(**_: object) -> None:
    """Have running replays given back, so that the worker ends soon and the next one begins them anew."""
    _stopping.set()


def replay_make(replay_id: int, driver_of: Callable[[int], ClusterDriver]) -> None:
    """Make the replay, unless somebody else is at it or it is not due; `driver_of` takes a cluster's id."""
    claim = replay_begin(replay_id=replay_id, now=timezone.now(), lease=LEASE)
    if claim is None:
        return
    done = 0

    def renew() -> bool:
        return replay_renew(claim=claim, done=done, now=timezone.now(), lease=LEASE)

    with held(f"hold-replay-{replay_id}", renew, every_s=_PROGRESS_EVERY_S) as lost:

        def note(count: int) -> None:
            nonlocal done
            done = count
            if lost.is_set() or _stopping.is_set():
                raise _LetGo

        try:
            report = _answered(claim, driver_of(claim.cluster_id), note)
        except _LetGo:
            if _stopping.is_set():
                replay_put_back(claim=claim, now=timezone.now())
            logger.info("replay %s was let go", replay_id)
        except InvalidInput as error:
            replay_fail(claim=claim, reason=error.message, now=timezone.now())
        except FairleadError as error:
            logger.warning("replay %s broke off: %s", replay_id, error)
            replay_broke_off(claim=claim, reason=error.message, now=timezone.now())
        except Exception as error:  # a fault of ours must not leave the replay claimed and silent
            logger.exception("replay %s failed", replay_id)
            reason = f"it failed with {type(error).__name__}"  # the rest may quote a request
            replay_broke_off(claim=claim, reason=reason, now=timezone.now())
        else:
            ended = replay_end(claim=claim, report=report, done=done, now=timezone.now())
            logger.info("replay %s ended%s", replay_id, "" if ended else " after its claim was lost")


def _answered(claim: ReplayClaim, driver: ClusterDriver, note: Callable[[int], None]) -> Report:
    report, done = Report(), 0
    with driver.replay(claim.candidate) as answer:
        for recorded in files.read(claim.recording_id, length=claim.length):
            note(done)
            report = with_pair(report, Pair(recorded, answer(recorded)), claim.terms)
            done += 1
        note(done)
    return report
