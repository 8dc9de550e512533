"""Progress lines of a waiting command, throttled: an hour's hold does not print two thousand lines."""

import time
from collections.abc import Callable, Hashable

FIGURES_EVERY_S = 30.0


class Reporter:
    """Prints progress lines: at once where the state has changed, else new figures every half minute.

    Args:
        report: writes one line.
        clock: monotonic seconds.
    """

    def __init__(self, report: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._report = report
        self._clock = clock
        self._reported: tuple[Hashable, str, float] | None = None

    def see(self, line: str, turn: Hashable) -> None:
        """Take the current line; `turn` is equal as long as only figures in it have changed."""
        now = self._clock()
        if self._reported is not None:
            last_turn, last_line, reported_at = self._reported
            if line == last_line or (turn == last_turn and now - reported_at < FIGURES_EVERY_S):
                return
        self._reported = (turn, line, now)
        self._report(line)
