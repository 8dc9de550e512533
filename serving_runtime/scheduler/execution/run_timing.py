"""What runs take, and whether the model therefore belongs into the event loop or into a thread."""

from statistics import median

from serving_runtime.scheduler.batching import runs_inline

RUNS = 5
"""After so many runs it is decided anew, by the one in the middle."""

TOO_LONG_US = 100_000
"""No interruption: a run that kept the event loop for as long takes its model out at once."""


class RunMeter:
    """Follows the runs of one model, each so many of them together.

    On a busy machine a run may be interrupted, and is then a hundred times as long as what the model takes. A mean
    remembers that for long; of five runs two may be so, and the middle one is still the model's. A model that has
    become slow is out of the loop after nine runs at most, after the first where that took a tenth of a second.

    Attributes:
        inline: whether the next run should be in the loop; what was measured at warm-up holds for the first runs.

    Args:
        moves: whether that may change.
    """

    __slots__ = ("_moves", "_requests_us", "_runs_us", "inline")

    def __init__(self, *, inline: bool, moves: bool = True) -> None:
        self.inline = inline
        self._moves = moves
        self._runs_us: list[float] = []
        self._requests_us: list[float] = []

    def observe(self, run_ns: int, requests: int) -> None:
        """Take in one run that answered `requests` requests."""
        if not self._moves:
            return
        run_us = run_ns / 1000
        self._runs_us.append(run_us)
        self._requests_us.append(run_us / requests)
        if len(self._runs_us) == RUNS:
            self.inline = runs_inline(
                now_inline=self.inline, run_us=median(self._runs_us), request_us=median(self._requests_us)
            )
        elif self.inline and run_us > TOO_LONG_US:
            self.inline = False
        else:
            return
        self._runs_us.clear()
        self._requests_us.clear()
