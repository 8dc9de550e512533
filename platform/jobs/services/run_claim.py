"""Job runner: executes, releases and ends a claimed job, whatever its kind; renews its claim meanwhile.

Another worker restarts, from its beginning, an attempt whose worker ends.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from celery.signals import worker_shutting_down

from common.errors import FairleadError, InvalidInput
from jobs.services.claim_renewal import held

logger = logging.getLogger(__name__)
_PROGRESS_EVERY_S = 1.0
_stopping = threading.Event()


class LetGo(BaseException):
    """The job was stopped, or another worker has it, or this worker is shutting down: nothing is left to do here."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """Writes of an attempt, all fenced by its claim.

    Attributes:
        what: names the job in logs, as in `build 5`.
        renew: writes the progress and renews the claim; False once it is lost.
        put_back: releases the job, so that another worker begins at once, as if this attempt had not.
        fail: takes the reason of a permanent failure.
        broke_off: takes the reason why this attempt ended without a result.
    """

    what: str
    renew: Callable[[], bool]
    put_back: Callable[[], None]
    fail: Callable[[str], None]
    broke_off: Callable[[str], None]


@worker_shutting_down.connect
def stop(**_: object) -> None:
    """Have running jobs released, so that the worker ends soon and the next one restarts them."""
    _stopping.set()


def make(attempt: Attempt, work: Callable[[Callable[[], None]], None]) -> None:
    """Do `work`, which calls its argument periodically, and once more before it writes its end."""
    with held(f"hold {attempt.what}", attempt.renew, every_s=_PROGRESS_EVERY_S) as lost:

        def go_on() -> None:
            if lost.is_set() or _stopping.is_set():
                raise LetGo

        try:
            work(go_on)
        except LetGo:
            if _stopping.is_set():
                attempt.put_back()
            logger.info("%s was let go", attempt.what)
        except InvalidInput as error:
            attempt.fail(error.message)
        except FairleadError as error:
            logger.warning("%s broke off: %s", attempt.what, error)
            attempt.broke_off(error.message)
        except Exception as error:  # a bug of ours must not leave the job claimed and silent
            logger.exception("%s failed", attempt.what)
            attempt.broke_off(f"it failed with {type(error).__name__}; the worker's log says more")
