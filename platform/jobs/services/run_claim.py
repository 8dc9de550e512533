"""How work that a task makes goes on, is let go and ends, whatever it is: a claim is held meanwhile, a cluster asked.

An attempt whose worker ends is made again by another, from its beginning.
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
    """Somebody stopped the work, or another worker has it, or this worker is to end: nothing is left to do here."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """What is written of an attempt, all of it fenced by its claim.

    Attributes:
        what: names the work in logs, as in `build 5`.
        renew: writes the progress and holds the claim; False once it is lost.
        put_back: lets another worker begin at once, as if this one had not.
        fail: takes why the work cannot be done.
        broke_off: takes why this attempt ended without saying anything of the work.
    """

    what: str
    renew: Callable[[], bool]
    put_back: Callable[[], None]
    fail: Callable[[str], None]
    broke_off: Callable[[str], None]


@worker_shutting_down.connect
def stop(**_: object) -> None:
    """Have running work given back, so that the worker ends soon and the next one begins it anew."""
    _stopping.set()


def make(attempt: Attempt, work: Callable[[Callable[[], None]], None]) -> None:
    """Do `work`, which calls what it is given every so often, and once more before it writes its end."""
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
        except Exception as error:  # a fault of ours must not leave the work claimed and silent
            logger.exception("%s failed", attempt.what)
            attempt.broke_off(f"it failed with {type(error).__name__}; the worker's log says more")
