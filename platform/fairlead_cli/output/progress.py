"""How a command that waits tells a log where things stand: a hold of an hour is not two thousand lines."""

import time
from collections.abc import Callable, Hashable

FIGURES_EVERY_S = 30.0


class Teller:
    """Tells lines as they are seen: at once where things have turned, else new figures every half minute.

    Args:
        tell: writes one line.
        clock: seconds that never go back.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._told: tuple[Hashable, str, float] | None = None

    def see(self, line: str, turn: Hashable) -> None:
        """Take the line of now; `turn` is equal as long as nothing but figures in it have changed."""
        now = self._clock()
        if self._told is not None:
            told_turn, told_line, told_at = self._told
            if line == told_line or (turn == told_turn and now - told_at < FIGURES_EVERY_S):
                return
        self._told = (turn, line, now)
        self._tell(line)
