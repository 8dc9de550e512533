"""Records what real runtimes count: four replicas of one version under varied load, their histograms once a second.

    python -m benchmarks.analysis.record tests/deployments/domain/analysis/recorded.npz [--seconds 420]

The replicas are `serving_runtime` processes that serve the same model on this machine, and each request goes to one of
them at random, as a gateway's do. The load changes every half minute between quiet, busy and bursty, and now and then
one replica is held for a moment, as a long garbage collection would. The file holds `edges_us` [edges] and `counts`
[seconds, replicas, edges + 1]; the tests cut A/A rollouts out of it, in which canary and stable are the same.
"""

import argparse
import asyncio
import itertools
import os
import re
import signal
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import numpy as np

from benchmarks.serving import models
from tests.serving_runtime._support.processes import ServerProcess, server

REPLICAS = 4
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [8, 64], "data": [0.5] * 512}]}
LOADS = itertools.cycle([(60.0, 1), (150.0, 1), (120.0, 20), (30.0, 1), (180.0, 6)])  # requests a second, in a burst
LOAD_S, HOLD_EVERY_S, HOLD_S = 30.0, 17.0, 0.35
BUCKET = re.compile(r'^fairlead_inference_request_duration_us_bucket\{.*le="([^"]+)"\} (\S+)$', re.M)


def counts_of(replica: ServerProcess) -> dict[float, int]:
    """Return the cumulative count under each edge."""
    return {float(edge): round(float(count)) for edge, count in BUCKET.findall(replica.metrics_page())}


async def clients(replicas: list[ServerProcess], until: float, random: np.random.Generator) -> None:
    """Send requests in bursts at exponential distances, whoever has answered or not."""
    limits = httpx.Limits(max_connections=200)
    running: set[asyncio.Task[None]] = set()
    (rate, burst), change_at = next(LOADS), time.monotonic() + LOAD_S
    async with httpx.AsyncClient(timeout=30, limits=limits, trust_env=False) as client:
        while (now := time.monotonic()) < until:
            if now >= change_at:
                (rate, burst), change_at = next(LOADS), now + LOAD_S
            for replica in random.choice(len(replicas), burst):
                task = asyncio.create_task(_ask(client, replicas[int(replica)]))
                running.add(task)
                task.add_done_callback(running.discard)
            await asyncio.sleep(random.exponential(burst / rate))
        await asyncio.gather(*running)


async def _ask(client: httpx.AsyncClient, replica: ServerProcess) -> None:
    with suppress(httpx.TransportError):  # an idle connection that the server closed just now
        answer = await client.post(f"{replica.url}/v2/models/mlp/infer", json=BODY)
        answer.raise_for_status()


async def holds(replicas: list[ServerProcess], until: float, random: np.random.Generator) -> None:
    """Hold one replica for a moment, now and then."""
    while time.monotonic() < until:
        await asyncio.sleep(random.exponential(HOLD_EVERY_S))
        process = replicas[int(random.integers(len(replicas)))].process
        os.kill(process.pid, signal.SIGSTOP)
        await asyncio.sleep(HOLD_S)
        os.kill(process.pid, signal.SIGCONT)


async def looks(replicas: list[ServerProcess], until: float) -> list[list[dict[float, int]]]:
    """Return the cumulative counts of each replica, once a second."""
    rows, at = [], time.monotonic()
    while at < until:
        rows.append(await asyncio.gather(*(asyncio.to_thread(counts_of, replica) for replica in replicas)))
        at += 1.0
        await asyncio.sleep(max(0.0, at - time.monotonic()))
    return rows


async def record(replicas: list[ServerProcess], seconds: float) -> list[list[dict[float, int]]]:
    until = time.monotonic() + seconds
    rows, *_ = await asyncio.gather(
        looks(replicas, until),
        clients(replicas, until, np.random.default_rng(1)),
        holds(replicas, until, np.random.default_rng(2)),
    )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seconds", type=float, default=420.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        file = Path(folder) / "models/mlp/1/model.onnx"
        file.parent.mkdir(parents=True)
        models.save("mlp_small", file)
        (file.parent.parent / "config.pbtxt").write_text("max_batch_size: 64\ndynamic_batching { }\n")
        replicas = [stack.enter_context(server(Path(folder) / "models", scratch=Path(folder))) for _ in range(REPLICAS)]
        rows = asyncio.run(record(replicas, options.seconds))
    edges = sorted(rows[-1][0])
    cumulative = np.array([[[look.get(edge, 0) for edge in edges] for look in row] for row in rows])
    counts = np.diff(np.diff(cumulative, axis=2, prepend=0), axis=0)
    np.savez_compressed(options.file, edges_us=np.array(edges[:-1]), counts=counts.astype(np.uint16))
    print(f"{options.file}: {counts.sum()} requests in {len(counts)} s, {options.file.stat().st_size} bytes")


if __name__ == "__main__":
    main()
