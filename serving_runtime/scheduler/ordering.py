"""Response ordering (Triton: preserve_ordering): answers in request order, whichever instance finishes first."""

from collections import deque
from collections.abc import Sequence

from serving_runtime.scheduler.execution.execution import Execution
from serving_runtime.scheduler.job import Job


class _Turn:
    """One batch in order, with its executions once it is done."""

    __slots__ = ("executions",)

    def __init__(self) -> None:
        self.executions: Sequence[Execution] | None = None


class AnswerOrder:
    """Holds executions back until all that began before them are done."""

    def __init__(self) -> None:
        self._turns: deque[_Turn] = deque()
        self._by_first_job: dict[Job, _Turn] = {}

    def began(self, jobs: Sequence[Job]) -> None:
        """Record that a batch runs now; batches are answered in the order of these calls."""
        turn = _Turn()
        self._turns.append(turn)
        self._by_first_job[jobs[0]] = turn

    def ended(self, executions: Sequence[Execution]) -> list[Execution]:
        """Return the executions to answer now that a batch is done, in order; empty while an earlier one still runs."""
        self._by_first_job.pop(executions[0].jobs[0]).executions = executions
        released: list[Execution] = []
        while self._turns and self._turns[0].executions is not None:
            released += self._turns.popleft().executions or ()
        return released
