"""Inspection and profiling of an ensemble: the models of its steps lie beside it and are loaded with it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from serving_runtime.common.datatypes import BYTES, Array
from serving_runtime.common.errors import ModelError
from serving_runtime.common.request import InferRequest, InferResponse, Outcome, Tensor
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.lifecycle.control_mode import Control, ControlMode
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.memory.process_memory import resident_bytes
from serving_runtime.engine.serving.engine import Engine


@dataclass(frozen=True, slots=True)
class Measured:
    """An ensemble with its models: `times_us` holds the duration of each request, by its number of rows."""

    load_seconds: float
    memory_bytes: int
    times_us: dict[int, list[float]]


async def check(folder: Path, settings: LoadSettings) -> None:
    """Raise ModelError unless all models of the steps can be served, and fit together."""
    async with _served(folder, settings):
        pass


async def measure(
    folder: Path, settings: LoadSettings, batch_sizes: Callable[[int], list[int]], *, runs: int, enough_s: float
) -> Measured:
    """Return the ensemble's latencies on made-up inputs; raises ModelError.

    Args:
        batch_sizes: returns the numbers of rows to measure, given the largest.
        enough_s: time after which no more requests of a size are sent.
    """
    before, started = resident_bytes(), time.perf_counter()
    async with _served(folder, settings) as engine:
        load_seconds = time.perf_counter() - started
        config = engine.servable(folder.name).config
        times = {}
        for rows in batch_sizes(config.max_batch_size):
            request = InferRequest(folder.name, "", tuple(_made_up(config, rows)))
            await _answer(engine, request)  # the first one allocates
            times[rows] = await _times_us(engine, request, runs=runs, enough_s=enough_s)
        remote = sum(load_model.remote_bytes(servable.model) for servable in engine.servables())
        return Measured(load_seconds, max(0, resident_bytes() - before) + remote, times)


@asynccontextmanager
async def _served(folder: Path, settings: LoadSettings) -> AsyncIterator[Engine]:
    engine = Engine([folder.parent], settings, Control(ControlMode.EXPLICIT, load_models=(folder.name,)))
    try:
        for error in await engine.load_all():
            raise ModelError(str(error)) from error
        yield engine
    finally:
        engine.close()


async def _times_us(engine: Engine, request: InferRequest, *, runs: int, enough_s: float) -> list[float]:
    times: list[float] = []
    stop = time.perf_counter() + enough_s
    while len(times) < runs and (not times or time.perf_counter() < stop):
        started = time.perf_counter()
        await _answer(engine, request)
        times.append((time.perf_counter() - started) * 1e6)
    return times


async def _answer(engine: Engine, request: InferRequest) -> None:
    answered: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    engine.infer(request, answered.set_result)
    outcome = await answered
    if not isinstance(outcome, InferResponse):
        raise outcome


def _made_up(config: ModelConfig, rows: int) -> list[Tensor]:
    """Return zeros (empty strings), variable dimensions 1 long."""
    batch = (rows,) if config.max_batch_size else ()
    return [
        Tensor(tensor.name, tensor.datatype, _zeros(tensor, batch)) for tensor in config.inputs if not tensor.optional
    ]


def _zeros(tensor: ModelTensor, batch: tuple[int, ...]) -> Array:
    shape = (*batch, *(1 if dim == -1 else dim for dim in tensor.dims))
    if tensor.datatype is BYTES:
        return np.full(shape, b"", dtype=object)
    return np.zeros(shape, dtype=tensor.datatype.dtype)
