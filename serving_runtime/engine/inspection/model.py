"""Inspection and profiling of a model's folder, as versioned JSON: the control plane's only source on a model."""

import asyncio
import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from serving_runtime.common.errors import ModelError
from serving_runtime.config.instances import kind_of
from serving_runtime.devices import nvml
from serving_runtime.devices.cpu import cpu_name
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.inspection import ensemble
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.load_model import LoadPlan, OpenedModel
from serving_runtime.engine.loading.settings import LoadSettings
from serving_runtime.engine.loading.warmup import measure_us
from serving_runtime.engine.memory.process_memory import resident_bytes

INSPECT_SCHEMA = "fairlead.inspect/v1"
PROFILE_SCHEMA = "fairlead.profile/v1"

MOST_ROWS = 64
"""The largest batch that a profile tries for a model whose configuration sets none."""

_SCATTER = 1.1
"""Ratio by which two measurements of the same thing differ."""

_LONGEST_US = 50_000.0
_RUNS = 50
_ENOUGH_S = 2.5
_DEFAULTS = LoadSettings()


def inspect(folder: Path, settings: LoadSettings = _DEFAULTS) -> dict[str, Any]:
    """Return signature and platform of the folder's default version; raises ModelError when it cannot be served."""
    opened = _opened(*_planned(folder, settings), settings)
    opened.model.close()
    config = opened.config
    if config.ensemble is not None:
        asyncio.run(ensemble.check(folder.resolve(), settings))
    batch = [-1] if config.max_batch_size else []
    tensors = {
        kind: [
            {
                "name": tensor.name,
                "datatype": tensor.datatype.name,
                "shape": [*batch, *tensor.dims],
                **({"optional": True} if tensor.optional else {}),
            }
            for tensor in found
        ]
        for kind, found in (("inputs", config.inputs), ("outputs", config.outputs))
    }
    return {
        "schema": INSPECT_SCHEMA,
        "platform": config.platform,
        "max_batch_size": config.max_batch_size,
        **tensors,
        "opset": opened.model.opsets,
    }


def profile(folder: Path, settings: LoadSettings = _DEFAULTS) -> dict[str, Any]:
    """Return load time, memory and latency per batch size, measured on made-up inputs.

    For a model whose configuration leaves batching open, also the `max_batch_size` found good: the last size up to
    MOST_ROWS that did not raise the cost of a row.

    Memory is the growth of this process by loading and running the model, so a process should profile once; the memory
    of a model's own processes is added. The model skips its load trial.
    """
    settings = dataclasses.replace(settings, trial=False)
    plan, version = _planned(folder, settings)
    if plan.written.HasField("ensemble_scheduling"):
        return _ensemble_profile(folder.resolve(), settings)
    load_model.backend_of(plan, version, settings)  # the library counts neither as the model's memory nor as load time
    before = resident_bytes()
    started = time.perf_counter()
    opened = _opened(plan, version, settings)
    if opened.config.decoupled:
        raise ModelError(f"model '{opened.config.name}' is decoupled; only models that answer once can be profiled")
    load_seconds = time.perf_counter() - started
    sizes = _batch_sizes(opened.config.max_batch_size)
    batches = [_measured(size, measure_us(opened.model, size, runs=_RUNS)) for size in sizes]
    good: dict[str, Any] = {}
    if leaves_batch_size_open(plan.written) and opened.config.max_batch_size > 1:
        batches += _larger_batches(opened.model, batches[-1])
        good = {"max_batch_size": batches[-1]["batch_size"]}
    memory_bytes = max(0, resident_bytes() - before) + load_model.remote_bytes(opened.model)
    opened.model.close()
    return {**_profile(load_seconds, memory_bytes, batches), **good, "device": _device(opened.message)}


def leaves_batch_size_open(written: Any) -> bool:
    """Return whether a ModelConfig message leaves batching open, so that another size respects it as well."""
    says_dims = any(tensor.dims for tensor in (*written.input, *written.output))
    return not (written.max_batch_size or says_dims) and written.WhichOneof("scheduling_choice") is None


def pays(smaller: Mapping[str, Any], larger: Mapping[str, Any]) -> bool:
    """Return whether a larger batch is good: no more time per row, and no long wait for other requests."""
    before, after = (each["latency_p50_us"] / each["batch_size"] for each in (smaller, larger))
    return bool(after <= _SCATTER * before and larger["latency_p50_us"] <= _LONGEST_US)


def _larger_batches(model: Any, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Return measurements of batches larger than this one, as long as each pays."""
    found: list[dict[str, Any]] = []
    while (size := 2 * measured["batch_size"]) <= MOST_ROWS:
        larger = _measured(size, measure_us(model, size, runs=_RUNS))
        if not pays(measured, larger):
            break
        found.append(larger)
        measured = larger
    return found


def _ensemble_profile(folder: Path, settings: LoadSettings) -> dict[str, Any]:
    measuring = ensemble.measure(folder, settings, _batch_sizes, runs=_RUNS, enough_s=_ENOUGH_S)
    found = asyncio.run(measuring)
    batches = [_measured(size, times) for size, times in found.times_us.items()]
    return _profile(found.load_seconds, found.memory_bytes, batches)


def _profile(load_seconds: float, memory_bytes: int, batches: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schema": PROFILE_SCHEMA,
        "load_seconds": round(load_seconds, 6),
        "memory_bytes": memory_bytes,
        "batches": batches,
    }


def _device(settled: Any) -> dict[str, str]:
    """Return the device that the model ran on by a settled ModelConfig message: the first of its GPUs, or the CPU.

    Every run of a profile is on one device, and instances are spread over a model's devices in their order.
    """
    numbers = [number for group in settled.instance_group if kind_of(group) == "KIND_GPU" for number in group.gpus]
    if not numbers:
        return {"kind": "cpu", "name": cpu_name()}
    gpu = nvml.mine().gpus[numbers[0]]
    return {"kind": "gpu", "name": gpu.name, "mig_profile": gpu.profile}


def _planned(path: Path, settings: LoadSettings) -> tuple[LoadPlan, int]:
    if not path.is_dir():
        raise ModelError(f"{path}: no such folder")
    folder = repository.model_folder(path.resolve())
    plan = load_model.plan(folder, settings)
    return plan, plan.versions[-1]


def _opened(plan: LoadPlan, version: int, settings: LoadSettings) -> OpenedModel:
    return load_model.open_versions(plan, (version,), settings, {})[version]


def _batch_sizes(max_batch_size: int) -> list[int]:
    """Return powers of two up to the largest batch, and the largest batch."""
    if max_batch_size <= 1:
        return [1]
    return sorted({1 << power for power in range(max_batch_size.bit_length())} | {max_batch_size})


def _measured(batch_size: int, times_us: list[float]) -> dict[str, Any]:
    times = sorted(times_us)
    return {
        "batch_size": batch_size,
        "iterations": len(times),
        "latency_p50_us": round(times[len(times) // 2], 1),
        "latency_p99_us": round(times[min(len(times) - 1, int(len(times) * 0.99))], 1),
    }
