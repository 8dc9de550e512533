"""ONNX Runtime in a loop, with no server around it: prints runs a second, and microseconds of processor time each.

Run by itself, so that it has a core as servers have:  python -m benchmarks.serving.alone FILE ROWS SECONDS
"""

import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime

from benchmarks.serving.models import MODELS
from benchmarks.serving.processes import SERVER_CORE


class Alone(NamedTuple):
    """What the loop found."""

    runs_per_s: float
    cpu_us: float


def measured(file: Path, rows: int, seconds: int) -> Alone:
    """Return what a model does by itself at that batch size, on the servers' core."""
    command = [sys.executable, "-m", "benchmarks.serving.alone", str(file), str(rows), str(seconds)]
    pinned = ["taskset", "-c", SERVER_CORE, *command]
    output = subprocess.run(pinned, capture_output=True, text=True, check=True, timeout=300).stdout
    return Alone(*map(float, output.split()))


def main() -> None:
    file, rows, seconds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    feeds = {"x": np.repeat(MODELS[file.stem].sample, rows, axis=0)}
    for _ in range(3):
        session.run(["y"], feeds)
    count, began, cpu = 0, time.monotonic(), time.process_time()
    while time.monotonic() - began < seconds:
        session.run(["y"], feeds)
        count += 1
    print(count / (time.monotonic() - began), (time.process_time() - cpu) / count * 1e6)


if __name__ == "__main__":
    main()
