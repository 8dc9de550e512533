"""Counts rows a minute from the gateway's access log, while a limit of them is set, and has Envoy refuse who is above.

    access log --lines since the last turn--> window of this minute --who is above, when it changes--> Envoy

A restart forgets the minute: it counts from the end of the log. Without the agent, who is refused stays refused.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from integrations.clusters.base.logged_requests import BadEntryError, read_line
from integrations.clusters.local.access_log_files import LogTail
from integrations.clusters.local.agent.gateway.row_limits import RowLimits, RowWindow
from integrations.clusters.local.envoy.values import RowsExceeded

log = logging.getLogger(__name__)

TURN_BYTES = 4 << 20
"""Most bytes of a turn, about eight thousand lines; an agent that is behind by more than a file leaves out lines."""
_REFUSED = b'"attempts":0'
"""In lines of requests that reached no replica, which are not parsed: a flood of them costs little. What clients send
cannot contain it, since Envoy escapes quotes."""
_MINUTE_S = 60
_REST = 4.0
"""The next turn comes after so many times as long as one took, as where thousands of callers are refused."""
_AFTER_S = 0.01
"""So long into a minute it is sure to have begun by a clock of milliseconds."""


class RowCounter:
    """Follows the log at `path`; `refuse` gets who is above a limit, whenever that changes. Use it from one loop."""

    def __init__(
        self, path: Path, refuse: Callable[[RowsExceeded], None], *, clock: Callable[[], float] = time.time
    ) -> None:
        self._tail = LogTail(path)
        self._refuse = refuse
        self._clock = clock
        self._limits = RowLimits()
        self._window = RowWindow(0)
        self._refused = RowsExceeded()
        self._problem = ""

    def limit(self, limits: RowLimits) -> None:
        """Count by these limits; what is counted of this minute stays."""
        self._limits = limits

    async def run(self, every_s: float) -> None:
        """Count forever, with a turn at the beginning of each minute."""
        took_s = 0.0
        try:
            while True:
                left_s = _MINUTE_S - self._clock() % _MINUTE_S
                await asyncio.sleep(min(max(every_s, _REST * took_s), left_s + _AFTER_S))
                begun = time.monotonic()
                await self.turn()
                took_s = time.monotonic() - begun
        finally:
            self.close()

    async def turn(self) -> None:
        """Count the lines since the last turn."""
        limits, minute = self._limits, int(self._clock() // _MINUTE_S)
        if minute != self._window.minute:
            self._window = RowWindow(minute)
        if limits:
            await asyncio.to_thread(self._count, limits)
        else:
            self.close()
        exceeded = self._window.exceeded(limits)
        if exceeded != self._refused:
            self._refused = exceeded
            self._refuse(exceeded)

    def close(self) -> None:
        """Close the log."""
        self._tail.close()

    def _count(self, limits: RowLimits) -> None:
        try:
            lines = self._tail.lines(TURN_BYTES)
            problem = ""
        except OSError as error:
            lines, problem = [], f"rows are not counted, and their limits refuse no one: {error}"
        if problem and problem != self._problem:
            log.warning("%s", problem)
        self._problem = problem
        for line in lines:
            if _REFUSED in line:
                continue
            try:
                request = read_line(line)
            except BadEntryError:
                continue  # the worker, which reads each line, says so
            if request is not None and request.revision:
                self._window.add(request, limits)
