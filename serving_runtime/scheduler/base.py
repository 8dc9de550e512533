"""Interface of schedulers to the engine; a model's scheduler is chosen once, when the model is loaded."""

from typing import Protocol

from serving_runtime.scheduler.job import Job


class ModelScheduler(Protocol):
    """Runs the jobs of one model version."""

    @property
    def pending(self) -> int:
        """Return how many requests wait."""
        ...

    @property
    def inline(self) -> bool:
        """Return whether the model runs in the event loop now."""
        ...

    def submit(self, job: Job) -> None:
        """Queue a job; its on_result is called later, never from here. Raises ServingError when it is refused."""
        ...

    def cancel(self, job: Job) -> None:
        """Drop a waiting job whose client has gone."""
        ...

    def close(self) -> None:
        """End the threads after the running work."""
        ...
