"""Clients without any rights that send to the gateway and do not go on: what they make Envoy hold is bounded."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.flood import attacks
from benchmarks.flood.attacks import Target
from benchmarks.flood.served import write_models
from benchmarks.serving import envoys
from benchmarks.serving.processes import Process
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy.clusters import STREAM_WINDOW_BYTES
from integrations.clusters.local.envoy.listener import CONNECTION_WINDOW_BYTES, MAX_STREAMS
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute
from tests.serving_runtime._support.processes import ServerProcess, server

MIB = 2**20
CONNECTIONS, CALLS = 8, 1000
MOST_OF_ONE = MAX_STREAMS * STREAM_WINDOW_BYTES + CONNECTION_WINDOW_BYTES
"""12 MiB: what the calls of one connection may have waiting for the runtime, and what Envoy has not looked at."""

OVERHEAD = 16 * MIB


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ServerProcess]:
    write_models(tmp_path / "models")
    flags = ["--model-control-mode=explicit", f"--load-model={attacks.MODEL}", f"--max-request-memory-bytes={64 * MIB}"]
    with server(tmp_path / "models", *flags, scratch=tmp_path) as process:
        yield process


@pytest.fixture
def gateway(runtime: ServerProcess, tmp_path: Path) -> Iterator[tuple[Process, int]]:
    """Envoy before the runtime, as the agent starts it, and its port."""
    revision = RevisionEndpoints("default", "small-00001", (Endpoint(runtime.http, runtime.grpc),))
    service = ServiceRoute("default", "small", (Backend("small-00001", model_version="1", share_percent=100),))
    process, port = envoys.start(Routing((service,), (revision,)), tmp_path / "envoy")
    try:
        process.wait_until(lambda: healthy(port))
        yield process, port
    finally:
        process.stop()


def healthy(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/serving/default/small/v2/health/ready", timeout=10).is_success
    except httpx.TransportError:
        return False


def resident_bytes(process: Process) -> int:
    return int(Path(f"/proc/{process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) * 1024


def test_unfinished_calls_of_eight_connections_hold_little(gateway: tuple[Process, int]) -> None:
    """480 MB are sent."""
    process, port = gateway
    before_bytes = most_bytes = resident_bytes(process)

    async def attack() -> None:
        nonlocal most_bytes
        held = asyncio.create_task(
            attacks.unfinished_calls(
                Target(port, port), connections=CONNECTIONS, calls=CALLS, hold_s=8, authority="small.default"
            )
        )
        while not held.done():
            most_bytes = max(most_bytes, resident_bytes(process))
            await asyncio.wait([held], timeout=0.05)
        await held

    asyncio.run(attack())
    assert most_bytes - before_bytes < CONNECTIONS * MOST_OF_ONE + OVERHEAD
    deadline = time.monotonic() + 30
    while not healthy(port):  # others are served
        assert time.monotonic() < deadline
