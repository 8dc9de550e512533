"""Makes tunings: a job where models run, followed while it goes. Called by tasks, with no transaction open.

An attempt whose worker ends is made again by another, from its beginning.
"""

import logging
import threading
from collections.abc import Callable
from typing import Any

from celery.signals import worker_shutting_down
from django.utils import timezone

from common.errors import FairleadError, InvalidInput
from deployments.services.tunings import (
    tuning_begin,
    tuning_broke_off,
    tuning_end,
    tuning_fail,
    tuning_put_back,
    tuning_renew,
)
from deployments.tuning import progress_in, read_report
from integrations.clusters.base import ClusterDriver
from registry.holding import LEASE, held

logger = logging.getLogger(__name__)
_PROGRESS_EVERY_S = 1.0
_stopping = threading.Event()


class _LetGo(BaseException):
    """Somebody stopped the tuning, or another worker has it, or this worker is to end: nothing is left to do here."""


@worker_shutting_down.connect
def stop_tunings(**_: object) -> None:
    """Have running tunings given back, so that the worker ends soon and the next one begins them anew."""
    _stopping.set()


def tuning_make(tuning_id: int, driver_of: Callable[[int], ClusterDriver]) -> None:
    """Make the tuning, unless somebody else is at it or it is not due; `driver_of` takes a cluster's id."""
    claim = tuning_begin(tuning_id=tuning_id, now=timezone.now(), lease=LEASE)
    if claim is None:
        return
    progress: dict[str, Any] = {}

    def renew() -> bool:
        return tuning_renew(claim=claim, progress=progress, now=timezone.now(), lease=LEASE)

    with held(f"hold-tuning-{tuning_id}", renew, every_s=_PROGRESS_EVERY_S) as lost:

        def note(line: str) -> None:
            nonlocal progress
            progress = progress_in(line) or progress
            if lost.is_set() or _stopping.is_set():
                raise _LetGo

        try:
            report = read_report(driver_of(claim.cluster_id).run(claim.job, note))
        except _LetGo:
            if _stopping.is_set():
                tuning_put_back(claim=claim, now=timezone.now())
            logger.info("tuning %s was let go", tuning_id)
        except InvalidInput as error:
            tuning_fail(claim=claim, reason=error.message, now=timezone.now())
        except FairleadError as error:
            logger.warning("tuning %s broke off: %s", tuning_id, error)
            tuning_broke_off(claim=claim, reason=error.message, now=timezone.now())
        except Exception as error:  # a fault of ours must not leave the tuning claimed and silent
            logger.exception("tuning %s failed", tuning_id)
            tuning_broke_off(claim=claim, reason=f"it failed with {type(error).__name__}: {error}", now=timezone.now())
        else:
            ended = tuning_end(claim=claim, report=report, now=timezone.now())
            logger.info("tuning %s ended%s", tuning_id, "" if ended else " after its claim was lost")
