"""MIG workers: one process per MIG slice, since a CUDA process sees a single slice (NVIDIA: MIG user guide).

whole GPUs, or none   this process serves, or as many workers as --workers asks for
one slice             this process serves, and CUDA is shown the slice by its UUID
several slices        this process starts a worker for each; the label gpu_uuid distinguishes their metrics
"""

import asyncio
import os
from collections.abc import Sequence

import uvloop

from serving_runtime.devices import nvml
from serving_runtime.devices.gpu import CUDA_VISIBLE, Gpu
from serving_runtime.server import serve
from serving_runtime.server.flags.command_line import Options
from serving_runtime.server.sockets import StartError
from serving_runtime.server.workers.worker_processes import Worker, Workers, alike, check_shareable, sum_of
from serving_runtime.telemetry.metrics.merged_pages import joined


def run(options: Options, arguments: Sequence[str]) -> int:
    """Serve until terminated; returns the exit code. Raises ServingError when the server cannot start."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")  # as NVML numbers them, and all libraries alike
    if serve.ONE_OF_SEVERAL in os.environ:
        return serve.run(options)
    gpus = nvml.mine().gpus
    slices = [gpu for gpu in gpus if gpu.profile]
    if len(slices) > 1 or (slices and options.workers > 1):
        check_slices(gpus, options.workers)
        check_shareable(options, f"{len(slices)} MIG slices")
        return _run(Workers(options, arguments, [_of_slice(one, gpus) for one in slices], joined))
    if options.workers > 1:
        check_shareable(options, f"--workers={options.workers}")
        if options.metrics.settings.summary_latencies:
            raise StartError(
                f"--metrics-config summary_latencies=true does not go with --workers={options.workers}: quantiles of "
                "several processes do not add up; take histogram_latencies=true"
            )
        return _run(Workers(options, arguments, alike(options.workers), sum_of))
    if slices:
        check_slices(gpus, options.workers)
        os.environ[CUDA_VISIBLE] = slices[0].uuid
    return serve.run(options)


def check_slices(gpus: Sequence[Gpu], workers: int) -> None:
    """Raise StartError for slices beside whole GPUs, and where the number of workers is not that of slices."""
    slices = sum(bool(gpu.profile) for gpu in gpus)
    if slices < len(gpus):
        raise StartError(
            f"this process is shown {slices} MIG slices and {len(gpus) - slices} whole GPUs, and CUDA sees "
            f"one kind or the other; choose by {CUDA_VISIBLE}"
        )
    if workers > 1:
        raise StartError(f"--workers={workers} does not go with MIG slices, each of which has one; leave it out")


def _of_slice(one: Gpu, every: Sequence[Gpu]) -> Worker:
    """Return a slice's worker; the first of them shows the machine's own metrics."""
    flags = () if one is every[0] else ("--allow-cpu-metrics=false",)
    return Worker(one.uuid, {CUDA_VISIBLE: one.uuid}, flags)


def _run(workers: Workers) -> int:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(workers.run())
