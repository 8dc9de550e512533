"""A model pool of one machine with many small ONNX models: agent, Envoy, fetcher and runtimes as services have them.

    python -m benchmarks.pools.machine [--models 10000] [--replicas 2] [--memory-mib 1024] [--seconds 60] [--clients 16]

Every model is a service of its own with files of its own, which clients ask over HTTP through the gateway by Zipf's
law. In the last phases a replica is added, one is removed and one is killed. Each phase prints what clients saw, and
what the replicas counted; the run fails where a request failed, or where the models took more memory than they may.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from common.errors import Unavailable
from integrations.clusters.base import Desired, DesiredRevision, ReplicaPhase
from integrations.clusters.local.pid_files import read_record
from pools.domain.figures import PoolFigures, figures
from tests.integrations._support.runtimes import RUNTIME, Cluster, until

POOL = "default/warm"
HOT = 50
"""So many of the most popular models are always in memory: what clients see of them is warm."""
_INPUTS, _HIDDEN = 64, 64
_MOST_OVER = 1.1
"""A model is measured once it has loaded, and others leave at once for what it takes more than was expected."""
_READY_S = 3600.0
_NOW = "loaded_models", "memory_bytes"


@dataclass
class Seen:
    """What clients saw in a phase: how long answers took, in seconds, by the rank of the model, and failures."""

    took_s: list[tuple[int, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def quantiles_ms(self, *, hot: bool) -> str:
        """Return the median and the 99th percentile of answers of hot models, or of all others."""
        found = [took_s for rank, took_s in self.took_s if (rank < HOT) == hot]
        if not found:
            return "none"
        median, high = np.quantile(found, [0.5, 0.99])
        return f"{median * 1000:.1f} and {high * 1000:.0f} ms"


def model(number: int) -> bytes:
    """Return a perceptron of x [n, 64] with random weights of its own: 5,000 parameters, 20 KB."""
    random = np.random.default_rng(number)
    first = random.standard_normal((_INPUTS, _HIDDEN)).astype("f4")
    second = random.standard_normal((_HIDDEN, 10)).astype("f4")
    nodes = [
        helper.make_node("MatMul", ["x", "first"], ["hidden"]),
        helper.make_node("Relu", ["hidden"], ["positive"]),
        helper.make_node("MatMul", ["positive", "second"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", _INPUTS])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 10])
    weights = [numpy_helper.from_array(first, "first"), numpy_helper.from_array(second, "second")]
    graph = helper.make_graph(nodes, "perceptron", [x], [y], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


def service(rank: int) -> str:
    """Return the name of the service with the model of this rank."""
    return f"m-{rank}"


def apply_pool(cluster: Cluster, generation: int, replicas: int, memory_bytes: int) -> None:
    revision = DesiredRevision(
        "warm-00001", "warm", "1", "", "", replicas, 100, is_pool=True, pool_memory_bytes=memory_bytes
    )
    cluster.driver.apply(Desired("default", "warm", generation, (revision,)))
    until(lambda: ready(cluster) == replicas, f"{replicas} replicas of the pool are ready", 120)


def ready(cluster: Cluster) -> int:
    found = [each for one in cluster.driver.observe("default", "warm").revisions for each in one.replicas]
    return len(found) if all(each.phase is ReplicaPhase.READY for each in found) else 0


def apply_services(cluster: Cluster, count: int) -> None:
    for rank in range(count):
        stored = cluster.artifact(model(rank))
        name = service(rank)
        revision = DesiredRevision(f"{name}-00001", name, "1", stored.uri, stored.digest, 1, 100, pool=POOL)
        cluster.driver.apply(Desired("default", name, 1, (revision,)))


def all_routed(cluster: Cluster, names: set[str]) -> bool:
    """Return whether all have their weight; those that have are looked at no more."""
    for name in sorted(names):
        seen = cluster.driver.observe("default", name).revisions
        if not seen or seen[0].weight_percent != 100:
            return False
        names.discard(name)
    return True


def popularity(count: int, exponent: float) -> NDArray[np.float64]:
    """Return the share of requests of each model, by its rank (Zipf)."""
    weights = 1 / np.arange(1, count + 1) ** exponent
    return np.asarray(weights / weights.sum())


@contextlib.asynccontextmanager
async def traffic(url: str, shares: NDArray[np.float64], clients: int, seed: int) -> AsyncIterator[Seen]:
    """Have clients ask while the block runs, each over one connection."""
    seen, over = Seen(), asyncio.Event()
    parts = urlsplit(url)
    picks = np.random.default_rng(seed).choice(len(shares), 1_000_000, p=shares)
    ranks = itertools.cycle(int(each) for each in picks)
    tasks = [
        asyncio.create_task(_ask(parts.hostname or "", parts.port or 0, ranks, seen, over)) for _ in range(clients)
    ]
    try:
        yield seen
    finally:
        over.set()
        await asyncio.gather(*tasks)


async def _ask(host: str, port: int, ranks: Iterator[int], seen: Seen, over: asyncio.Event) -> None:
    tensor = {"name": "x", "datatype": "FP32", "shape": [1, _INPUTS], "parameters": {"binary_data_size": _INPUTS * 4}}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    body = head + np.linspace(0, 1, _INPUTS, dtype="f4").tobytes()
    reader, writer = await asyncio.open_connection(host, port)
    while not over.is_set():
        rank = next(ranks)
        path = f"/serving/default/{service(rank)}/v2/models/{service(rank)}/infer"
        lines = (
            f"POST {path} HTTP/1.1",
            "Host: gateway",
            f"Inference-Header-Content-Length: {len(head)}",
            f"Content-Length: {len(body)}",
        )
        began = time.perf_counter()
        try:
            writer.write("\r\n".join((*lines, "", "")).encode() + body)
            status, answer = await _answer(reader)
        except (OSError, asyncio.IncompleteReadError, ValueError) as error:
            seen.failures.append(f"{service(rank)}: {type(error).__name__}")
            reader, writer = await asyncio.open_connection(host, port)
            continue
        if status == 200:
            seen.took_s.append((rank, time.perf_counter() - began))
        else:
            seen.failures.append(f"{service(rank)}: {status} {answer[:200]!r}")
    writer.close()


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    status, length = int((await reader.readline()).split()[1]), 0
    while (line := await reader.readline()).strip():
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return status, await reader.readexactly(length)


def counted(cluster: Cluster) -> dict[str, PoolFigures]:
    """Return what each replica has counted since it started."""
    replicas = [each for one in cluster.driver.observe("default", "warm").revisions for each in one.replicas]
    found = {}
    for each in replicas:
        with contextlib.suppress(Unavailable):  # it has just ended
            found[each.name] = figures([cluster.driver.metrics_page("default", each)])
    return found


def increase(before: dict[str, PoolFigures], after: dict[str, PoolFigures], counter: str) -> int:
    """Return by how much a counter of all replicas grew; one that was started meanwhile began at 0."""
    grown = 0
    for name, now in after.items():
        was = getattr(before[name], counter) if name in before and before[name].hits <= now.hits else 0
        grown += getattr(now, counter) - was
    return grown


async def phase(
    name: str, cluster: Cluster, shares: NDArray[np.float64], options: argparse.Namespace, change: Sequence[str] = ()
) -> list[str]:
    """Run one phase of load, and print it; returns the failures, of requests and of the memory's limit."""
    before, most, began = counted(cluster), 0, time.monotonic()
    async with traffic(cluster.url, shares, options.clients, hash(name) % 1000) as seen:
        ends = began + options.seconds
        done = asyncio.create_task(asyncio.to_thread(_change, cluster, change, options))
        while time.monotonic() < ends or not done.done():
            await asyncio.sleep(1)
            now = await asyncio.to_thread(counted, cluster)
            most = max(most, sum(each.memory_bytes for each in now.values()))
            seen.failures += [
                f"models of {replica} take {each.memory_bytes} of {each.memory_limit_bytes} bytes"
                for replica, each in now.items()
                if each.memory_bytes > _MOST_OVER * each.memory_limit_bytes
            ]
        await done
    after = counted(cluster)
    took_s, asked = time.monotonic() - began, len(seen.took_s)
    hits, misses, loads = (increase(before, after, counter) for counter in ("hits", "misses", "loads"))
    models, memory_bytes = (sum(getattr(each, what) for each in after.values()) for what in _NOW)
    print(
        f"{name}: {asked / took_s:.0f} requests/s, hits {100 * hits / max(1, hits + misses):.1f} %, "
        f"{loads / took_s:.0f} loads/s, {models} models and {memory_bytes >> 20} MiB in memory (at most "
        f"{most >> 20}); the {HOT} "
        f"hottest {seen.quantiles_ms(hot=True)}, others {seen.quantiles_ms(hot=False)} (p50 and p99); "
        f"{len(seen.failures)} failures",
        flush=True,
    )
    for failure in seen.failures[:3]:
        print(f"  {failure}", flush=True)
    return seen.failures


def _change(cluster: Cluster, change: Sequence[str], options: argparse.Namespace) -> None:
    for what in change:
        if what == "kill":
            record = read_record(cluster.layout.run / "default.warm-00001-0.json")
            if record is not None and record.pid is not None:
                os.kill(record.pid, signal.SIGKILL)
            time.sleep(1)
            until(lambda: ready(cluster) == options.replicas, "the killed replica is there again", 120)
        else:
            apply_pool(cluster, int(time.time()), options.replicas + (what == "add"), options.memory_mib << 20)


async def run(cluster: Cluster, options: argparse.Namespace) -> list[str]:
    shares = popularity(options.models, options.zipf)
    found = await phase("warm-up", cluster, shares, options)
    found += await phase("steady", cluster, shares, options)
    found += await phase("a replica more", cluster, shares, options, ["add"])
    found += await phase("a replica less", cluster, shares, options, ["remove"])
    return found + await phase("a replica killed", cluster, shares, options, ["kill"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--models", type=int, default=10_000)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--memory-mib", type=int, default=1024, help="of the models of each replica")
    parser.add_argument("--zipf", type=float, default=1.0, help="exponent of the popularity of models")
    parser.add_argument("--seconds", type=float, default=60, help="of each phase")
    parser.add_argument("--clients", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-pools-") as folder:
        cluster = Cluster(Path(folder))
        try:
            cluster.start(runtime=RUNTIME, start_s=60)
            apply_pool(cluster, 1, options.replicas, options.memory_mib << 20)
            began = time.monotonic()
            apply_services(cluster, options.models)
            print(f"{options.models} services applied in {time.monotonic() - began:.0f} s", flush=True)
            missing = {service(rank) for rank in range(options.models)}
            until(lambda: all_routed(cluster, missing), f"all have loaded once; {len(missing)} have not", _READY_S)
            print(f"all loaded once and routed after {time.monotonic() - began:.0f} s", flush=True)
            failures = asyncio.run(run(cluster, options))
        finally:
            cluster.close()
    if failures:
        sys.exit(f"{len(failures)} failures, such as {failures[:5]}")


if __name__ == "__main__":
    main()
