"""The runtime under attack and its models, the probe beside it, and what was measured of both."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks.flood.attacks import BOMB, MODEL, WIDE, Answers, Target
from benchmarks.serving.processes import Process, any_core

MIB = 2**20
REQUEST_BYTES, MODEL_BYTES = 512 * MIB, 1024 * MIB
"""Of memory: for unfinished requests, and for models."""

_BOMB_SIDE = 29_000
"""Of the square of FP32 that the first run of BOMB makes: 3.1 GiB."""


_BESIDE_S = 1.0
"""How long the probe asks before an attack, and after it."""


@dataclass(frozen=True)
class Measured:
    """One attack.

    Attributes:
        worst_s, p99_s: until the probe's health was answered.
        infer_worst_s: until its inference was.
        asked: how often it asked for both.
        failures: of the probe's requests.
        grown_bytes: the most memory that the server had, beyond what it had before.
    """

    name: str
    worst_s: float
    p99_s: float
    infer_worst_s: float
    asked: int
    failures: int
    grown_bytes: int
    answers: str


def write_models(root: Path) -> None:
    """Write MODEL, x [N,4] -> y, WIDE of variable dimensions, and BOMB, whose few bytes ask for gigabytes."""
    node = helper.make_node
    _save(root / MODEL, [node("Identity", ["x"], ["y"])], [])
    _save(root / WIDE, [node("Identity", ["x"], ["y"])], [], shape=("N", "M"))
    side = numpy_helper.from_array(np.array([_BOMB_SIDE, _BOMB_SIDE], "i8"), "side")
    nodes = [
        node("ConstantOfShape", ["side"], ["large"]),
        node("ReduceSum", ["large"], ["zero"], keepdims=0),
        node("Add", ["x", "zero"], ["y"]),
    ]
    _save(root / BOMB, nodes, [side])


def _save(
    folder: Path,
    nodes: list[onnx.NodeProto],
    initializers: list[onnx.TensorProto],
    *,
    shape: tuple[str | int, ...] = ("N", 4),
) -> None:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], initializers)
    (folder / "1").mkdir(parents=True)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), folder / "1" / "model.onnx"
    )


@contextmanager
def served(folder: Path, *, cores: str = "") -> Iterator[tuple[Process, Target]]:
    """Serve MODEL and WIDE until the block ends."""
    write_models(folder / "models")
    ports = folder / "ports.json"
    flags = {
        "model-repository": folder / "models",
        "model-control-mode": "explicit",
        "http-address": "127.0.0.1",
        "grpc-address": "127.0.0.1",
        "metrics-address": "127.0.0.1",
        "http-port": 0,
        "grpc-port": 0,
        "metrics-port": 0,
        "allow-client-shm": "true",
        "port-file": ports,
        "max-request-memory-bytes": REQUEST_BYTES,
        "model-memory-budget-bytes": MODEL_BYTES,
    }
    loaded = [f"--load-model={name}" for name in (MODEL, WIDE)]
    command = [
        sys.executable,
        "-m",
        "serving_runtime",
        *loaded,
        *[f"--{name}={value}" for name, value in flags.items()],
    ]
    process = Process(command, folder / "log.txt", cores=cores or any_core())
    try:
        process.wait_until(ports.exists)
        found = json.loads(ports.read_text())
        yield process, Target(found["http"], found["grpc"])
    finally:
        process.stop()


class _Memory:
    """The memory of a server, followed while something goes on."""

    def __init__(self, process: Process) -> None:
        self._status = Path(f"/proc/{process.pid}/status")
        self.before_bytes = self.most_bytes = self._now()
        self._task = asyncio.get_running_loop().create_task(self._follow())

    def stop(self) -> int:
        """Return by how much it grew at most."""
        self._task.cancel()
        return self.most_bytes - self.before_bytes

    async def _follow(self) -> None:
        while True:
            self.most_bytes = max(self.most_bytes, self._now())
            await asyncio.sleep(0.02)

    def _now(self) -> int:
        return int(self._status.read_text().split("VmRSS:")[1].split()[0]) * 1024


async def measured(name: str, process: Process, target: Target, attack: Coroutine[Any, Any, Answers]) -> Measured:
    """Return what an attack was answered, and what it did to the server and to another client."""
    probe = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.flood.probe", str(target.http), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    await asyncio.sleep(_BESIDE_S)
    memory = _Memory(process)
    answers = await attack
    await asyncio.sleep(_BESIDE_S)
    grown_bytes = memory.stop()
    output, _ = await probe.communicate(b"\n")
    seen = json.loads(output)
    health = sorted(seen["health_s"])
    return Measured(
        name=name,
        worst_s=health[-1],
        p99_s=health[int(len(health) * 0.99)],
        infer_worst_s=max(seen["infer_s"]),
        asked=len(health),
        failures=seen["failures"],
        grown_bytes=grown_bytes,
        answers=", ".join(f"{count} of {answer}" for answer, count in sorted(answers.items())) or "none",
    )
