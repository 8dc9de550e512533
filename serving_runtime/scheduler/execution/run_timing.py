"""Run times of a model, which decide between the event loop and a thread."""

from statistics import median

from serving_runtime.scheduler.batching import runs_inline

RUNS = 5
"""Runs per decision; their median decides."""

TOO_LONG_US = 100_000
"""No interruption: a single run that blocked the event loop for this long moves its model out at once."""


class RunMeter:
    """Measures the runs of one model, in groups of so many.

    On a busy machine a run may be interrupted, and then takes a hundred times as long as the model needs. A mean
    remembers that for long; of five runs two may be interrupted, and the median is still the model's. A model that
    has become slow leaves the loop after nine runs at most, after the first where that took a tenth of a second.

    Attributes:
        inline: whether the next run should be in the loop; the measurement at warm-up decides for the first runs.

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
        """Record one run that answered `requests` requests."""
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
