"""On-demand loading: a model is loaded by its first request, which waits for the load, within bounds."""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import Protocol, TypeAlias

from serving_runtime.common.errors import NoRoom, ServingError, Unavailable
from serving_runtime.common.request import Cancellable, InferRequest, OnDone
from serving_runtime.engine.lifecycle.model_lifecycle import Lifecycle
from serving_runtime.engine.lifecycle.states import Model
from serving_runtime.telemetry.metrics.families import ModelSeries

Start: TypeAlias = Callable[[InferRequest, OnDone], Cancellable]

MAX_WAITING = 1024
MAX_WAITING_BYTES = 512 * 1024 * 1024
"""Limit of the inputs of all waiting requests; further ones are refused."""

RETRY_S = 10.0
"""A model that failed to load is not tried again for every request."""


class Waiting:
    """A request whose model is being loaded; becomes a job once it is loaded."""

    def __init__(self) -> None:
        self.job: Cancellable | None = None
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        if self.job is not None:
            self.job.cancel()


class Source(Protocol):
    """Where very many models come from, in place of repositories."""

    @property
    def is_ready(self) -> bool:
        """Return whether models can be loaded."""
        ...

    def stays(self, name: str) -> bool:
        """Return whether a model is not to be evicted."""
        ...

    def series(self) -> list[ModelSeries]:
        """Return the data of the metrics page, of a bounded number of models."""
        ...

    def loader(self, lifecycle: Lifecycle) -> "OnDemand":
        """Return the loader of its models into `lifecycle`."""
        ...


class OnDemand:
    """Loads models at their first request. Lives on the event loop.

    Attributes:
        waiting: how many requests wait.
    """

    def __init__(self, lifecycle: Lifecycle, timeout_s: float) -> None:
        self._lifecycle = lifecycle
        self._timeout_s = timeout_s
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._retry_at: dict[str, float] = {}
        self.waiting = 0
        self._waiting_bytes = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def may_load(self, name: str, model: Model | None) -> bool:
        """Return whether a request would load the model: not where a load has just failed.

        Args:
            model: of that name; None for an unknown one.
        """
        return model is not None and not model.serving and time.monotonic() >= self._retry_at.get(name, 0.0)

    def infer(self, request: InferRequest, on_done: OnDone, start: Start) -> Waiting:
        """Make a request wait for the load; `start` begins it."""
        waiting = Waiting()
        task = asyncio.get_running_loop().create_task(self._begin(waiting, request, on_done, start))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return waiting

    async def arrive(self, name: str, size_bytes: int) -> None:
        """Return when a model is loaded, for a request of so many bytes.

        Raises ServingError when the model does not load, or not in time, or too many bytes wait already.
        """
        if self.waiting >= MAX_WAITING or self._waiting_bytes + size_bytes > MAX_WAITING_BYTES:
            raise Unavailable(
                f"model '{name}' is not loaded, and {self.waiting} requests with {self._waiting_bytes} bytes wait for "
                "models already"
            )
        self.waiting += 1
        self._waiting_bytes += size_bytes
        try:
            await self._arrive(name)
        finally:
            self.waiting -= 1
            self._waiting_bytes -= size_bytes

    async def _arrive(self, name: str) -> None:
        load = self._loads.get(name)
        if load is None:
            load = self._begin_load(name)
        try:
            await asyncio.wait_for(asyncio.shield(load), self._timeout_s)
        except TimeoutError as error:
            raise Unavailable(
                f"model '{name}' was not loaded within {self._timeout_s:g} s (--load-on-demand-timeout-secs); "
                "the load goes on, try again"
            ) from error

    def _begin_load(self, name: str) -> "asyncio.Task[None]":
        load = self._loads[name] = asyncio.get_running_loop().create_task(self._load(name))
        load.add_done_callback(partial(self._loaded, name))
        return load

    def _loaded(self, name: str, load: asyncio.Task[None]) -> None:
        del self._loads[name]
        if not load.cancelled():
            load.exception()  # retrieved, to avoid asyncio's warning; the model's state has the error

    def close(self) -> None:
        for task in (*self._tasks, *self._loads.values()):
            task.cancel()

    async def _begin(self, waiting: Waiting, request: InferRequest, on_done: OnDone, start: Start) -> None:
        try:
            await self.arrive(request.model_name, sum(tensor.array.nbytes for tensor in request.inputs))
            if not waiting.cancelled:
                waiting.job = start(request, on_done)
        except ServingError as error:
            if not waiting.cancelled:
                on_done(error)

    async def _load(self, name: str) -> None:
        try:
            await self._lifecycle.load(await self._lifecycle.find(name))
        except NoRoom:  # the next request may find room
            raise
        except ServingError:
            self._retry_at[name] = time.monotonic() + RETRY_S
            raise
        self._retry_at.pop(name, None)
