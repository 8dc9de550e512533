"""Payload taps: reads what the taps of a service's replicas recorded since the last turn.

The answers' comparison and recordings use it. The cursor is recorded in the turn's transaction: after a failure before
that the next turn reads the same payloads again.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from common.errors import Unavailable
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from integrations.clusters.base import Exchange

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """Payloads since the last turn; `cursor` is after them, `problem` says why the taps could not be read."""

    exchanges: Sequence[Exchange] = ()
    cursor: str = ""
    problem: str = ""


class Taps(Participant[Taken]):
    """Reads the taps of a service."""

    def collect(self, turn: Turn) -> Taken:
        """Return the payloads of the service's taps since the last turn; none where the cluster cannot be read."""
        service = turn.service
        is_tapped = any(revision.tap is not None for revision in turn.read.desired().revisions)
        if not is_tapped and not service.tap_cursor:
            return Taken()
        try:
            found, cursor = turn.outside.driver.exchanges(service.namespace, service.name, service.tap_cursor)
        except Unavailable as error:
            logger.warning("%s: what was recorded is left for the next turn: %s", service, error)
            return Taken(cursor=service.tap_cursor, problem=error.message)
        return Taken(found, cursor if found or is_tapped else "")

    def record(self, change: Change, found: Taken) -> None:
        """Record up to where the payloads were read."""
        change.service.tap_cursor = found.cursor

    def unsettled(self, change: Change) -> bool:
        """Return whether there may be payloads to read."""
        return bool(change.service.tap_cursor)


TAPS = Taps()
