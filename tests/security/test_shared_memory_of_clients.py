"""Small requests that name a large region of shared memory: the copies count as bodies do."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from benchmarks.flood import attacks
from benchmarks.flood.attacks import MODEL, WIDE, Target
from benchmarks.flood.served import write_models
from tests.serving_runtime._support.processes import ServerProcess, server

MIB = 2**20
LIMIT_BYTES, REGION_BYTES, CLIENTS = 64 * MIB, 16 * MIB, 60
BEYOND_BYTES = 128 * MIB
"""Answers of the model, which are as large as its inputs and not counted, and what the heap keeps."""


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ServerProcess]:
    write_models(tmp_path / "models")
    flags = [
        "--model-control-mode=explicit",
        f"--load-model={MODEL}",
        f"--load-model={WIDE}",
        "--allow-client-shm=true",
        f"--max-request-memory-bytes={LIMIT_BYTES}",
    ]
    with server(tmp_path / "models", *flags, scratch=tmp_path) as process:
        yield process


def test_many_requests_that_name_a_large_region(runtime: ServerProcess) -> None:
    """960 MiB are asked for."""
    before_bytes = most_bytes = resident_bytes(runtime)

    async def attack() -> attacks.Answers:
        nonlocal most_bytes
        target = Target(runtime.http, runtime.grpc)
        asked = asyncio.create_task(attacks.shared_memory(target, clients=CLIENTS, size_bytes=REGION_BYTES))
        while not asked.done():
            most_bytes = max(most_bytes, resident_bytes(runtime))
            await asyncio.wait([asked], timeout=0.01)
        return await asked

    answers = asyncio.run(attack())
    assert set(answers) == {"200", "503"}
    assert sum(answers.values()) == CLIENTS
    assert most_bytes - before_bytes < LIMIT_BYTES + BEYOND_BYTES
    assert httpx.post(f"http://127.0.0.1:{runtime.http}/v2/systemsharedmemory/unregister").is_success
    target = Target(runtime.http, runtime.grpc)
    alone = attacks.shared_memory(target, clients=1, size_bytes=REGION_BYTES)
    assert asyncio.run(alone) == {"200": 1}  # what was copied is free again


def resident_bytes(process: ServerProcess) -> int:
    return int(Path(f"/proc/{process.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]) * 1024
