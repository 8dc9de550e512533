"""Job runner: executes, releases and ends a claimed job, whatever its kind; renews its claim meanwhile.

Another worker restarts, from its beginning, an attempt whose worker ends.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from celery.signals import worker_shutting_down

from common.errors import FairleadError, InvalidInput
from integrations.clusters.base import ClusterDriver, Job, JobResult
from jobs.services import claim as claims
from jobs.services.claim_renewal import LEASE, RENEW_EVERY_S, held
from jobs.services.kinds import Driver, JobClaim, JobKind, Note, Order, Report, Row

logger = logging.getLogger(__name__)
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


def is_stopping() -> bool:
    """Return whether this worker is shutting down, so that no further work should begin."""
    return _stopping.is_set()


def run(
    kind: JobKind[Row, Order, Report],
    row_id: int,
    driver_of: Callable[[int], ClusterDriver] | None = None,
    *,
    clock: Callable[[], datetime],
) -> Row | None:
    """Run the job, and return its row afterwards; None where it is claimed or not due. With no transaction open.

    Args:
        driver_of: takes a cluster's id; None for kinds that need no cluster.
        clock: returns the time.
    """
    claim = claims.begin(kind, row_id, now=clock(), lease=LEASE)
    if claim is None:
        return None
    what, progress = f"{kind.noun} {row_id}", dict(kind.progress)

    def driver() -> ClusterDriver:
        assert driver_of is not None  # noqa: S101 - of kinds that need none
        return driver_of(claim.cluster_id)

    def work(go_on: Callable[[], None]) -> None:
        def note(columns: Mapping[str, object] | None) -> None:
            progress.update(columns or {})
            go_on()

        report = kind.work(claim, driver, note)
        ended = claims.end(kind, claim, report, now=clock())
        logger.info("%s ended%s", what, "" if ended is not None else " without a result, or after its claim was lost")

    def renew() -> bool:
        return claims.renew(kind, claim, progress=dict(progress), now=clock(), lease=LEASE)

    attempt = Attempt(
        what,
        renew=renew,
        put_back=lambda: claims.put_back(kind, claim, now=clock()),
        fail=lambda reason: claims.fail(kind, claim, reason=reason, now=clock()),
        broke_off=lambda reason: claims.broke_off(kind, claim, reason=reason, now=clock()),
    )
    make(attempt, work)
    return kind.rows.filter(pk=row_id).first()


def as_job(
    *,
    progress: Callable[[str], Mapping[str, object] | None],
    report: Callable[[JobResult, Row], Report],
    begun: Mapping[str, object] | None = None,
    made: Callable[[JobClaim[Row, Job], Path], None] | None = None,
) -> Callable[[JobClaim[Row, Job], Driver, Note], Report]:
    """Return the work of a kind whose order is a `Job`, which the serving runtime does where models run.

    Args:
        progress: returns the columns of progress in a line of output; None for other lines. Pure.
        report: returns the report in the result of the job for a row. Pure.
        begun: columns of progress before the first line.
        made: stores the folder that the job made; None where it makes none.
    """

    def work(claim: JobClaim[Row, Job], driver: Driver, note: Note) -> Report:
        if begun is not None:
            note(begun)

        def read(line: str) -> None:
            note(progress(line))

        if made is None:
            return report(driver().run(claim.order, read), claim.row)
        return report(driver().run(claim.order, read, partial(made, claim)), claim.row)

    return work


def make(attempt: Attempt, work: Callable[[Callable[[], None]], None]) -> None:
    """Do `work`, which calls its argument periodically, and once more before it writes its end."""
    with held(f"hold {attempt.what}", attempt.renew, every_s=RENEW_EVERY_S) as lost:

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
