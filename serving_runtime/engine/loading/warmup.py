"""Latency measurement on made-up inputs: decides between event loop and thread, and is reported by `profile`."""

import time

import numpy as np

from serving_runtime.backends.base import LoadedModel
from serving_runtime.common.datatypes import ABSENT, BYTES, Array
from serving_runtime.common.errors import ServingError
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.signature import TensorSpec
from serving_runtime.scheduler.batching import runs_inline

_RUNS = 5
_ENOUGH_S = 0.05


def probe_inputs(model: LoadedModel, rows: int) -> list[Array]:
    """Return zeros (empty strings) in the file's shapes: the first variable dimension `rows` long, others 1."""
    return [ABSENT if spec.optional else _zeros(spec, rows) for spec in model.signature.inputs]


def measure_us(model: LoadedModel, rows: int, *, runs: int = _RUNS) -> list[float]:
    """Return the run times in microseconds; at least one, fewer than `runs` where the model is slow."""
    inputs = probe_inputs(model, rows)
    model.run(inputs)  # the first run allocates
    times: list[float] = []
    stop = time.perf_counter() + _ENOUGH_S * runs
    for _ in range(runs):
        started = time.perf_counter()
        model.run(inputs)
        times.append((time.perf_counter() - started) * 1e6)
        if time.perf_counter() > stop:
            break
    return times


def begins_inline(model: LoadedModel, config: ModelConfig) -> bool:
    """Return whether the model is fast enough to begin in the event loop.

    A model that refuses made-up inputs begins in a thread; serving measures it again.
    """
    try:
        alone_us = min(measure_us(model, 1))
        rows = config.max_batch_size if config.batching is not None else 1
        together_us = min(measure_us(model, rows)) if rows > 1 and alone_us < 1e5 else alone_us
    except ServingError:
        return False
    return runs_inline(now_inline=False, run_us=alone_us, request_us=alone_us) and runs_inline(
        now_inline=False, run_us=together_us, request_us=together_us / rows
    )


def _zeros(spec: TensorSpec, rows: int) -> Array:
    shape = [1 if dim == -1 else dim for dim in spec.shape]
    if spec.shape[:1] == (-1,):
        shape[0] = rows
    if spec.datatype is BYTES:
        return np.full(shape, b"", dtype=object)
    return np.zeros(shape, dtype=spec.datatype.dtype)
