"""What runs take on average, and whether the model therefore belongs into the event loop or into a thread."""

from serving_runtime.scheduler.batching import runs_inline

_DRIFT = 0.02
"""Weight of the newest run in the mean by which a model is moved in and out of the loop."""


class RunMeter:
    """Follows the runs of one model.

    Attributes:
        inline: whether the next run should be in the loop; at first what was measured at warm-up.

    Args:
        moves: whether that may change.
    """

    __slots__ = ("_mean_requests", "_mean_run_us", "_moves", "inline")

    def __init__(self, *, inline: bool, moves: bool = True) -> None:
        self.inline = inline
        self._moves = moves
        self._mean_run_us = 0.0
        self._mean_requests = 1.0

    def observe(self, run_ns: int, requests: int) -> None:
        """Take in one run that answered `requests` requests."""
        if not self._mean_run_us:
            self._mean_run_us, self._mean_requests = run_ns / 1000, float(requests)
        self._mean_run_us += (run_ns / 1000 - self._mean_run_us) * _DRIFT
        self._mean_requests += (requests - self._mean_requests) * _DRIFT
        if self._moves:
            self.inline = runs_inline(now_inline=self.inline, run_us=self._mean_run_us, requests=self._mean_requests)
