"""Progress lines of a waiting command, throttled: an hour's hold does not print two thousand lines."""

import time
from collections.abc import Callable, Hashable

FIGURES_EVERY_S = 30.0


class Teller:
    """Prints progress lines: at once where the state has changed, else new figures every half minute.

    Args:
        tell: writes one line.
        clock: monotonic seconds.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._told: tuple[Hashable, str, float] | None = None

    def see(self, line: str, turn: Hashable) -> None:
        """Take the current line; `turn` is equal as long as only figures in it have changed."""
        now = self._clock()
        if self._told is not None:
            told_turn, told_line, told_at = self._told
            if line == told_line or (turn == told_turn and now - told_at < FIGURES_EVERY_S):
                return
        self._told = (turn, line, now)
        self._tell(line)
