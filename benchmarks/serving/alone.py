"""ONNX Runtime in a loop, with no server around it, as a process that stays: it waits on its input for its turn.

    python -m benchmarks.serving.alone MODELS

Reads lines "MODEL ROWS RUNS"; after so many runs it prints how long one took, and its processor time, in seconds.
"""

import functools
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime

from benchmarks.serving.models import MODELS
from benchmarks.serving.processes import SERVER_CORE


class Run(NamedTuple):
    """One of a turn's runs, in the mean."""

    seconds: float
    cpu_s: float


class Alone:
    """Models by themselves, on the servers' core."""

    def __init__(self, models: Path) -> None:
        command = ["taskset", "-c", SERVER_CORE, sys.executable, "-m", "benchmarks.serving.alone", str(models)]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a terminal's Ctrl-C is for who started it, whose end is its own
        )

    def turn(self, model: str, rows: int, runs: int) -> Run:
        """Run a model so many times at that batch size."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{model} {rows} {runs}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"ONNX Runtime alone ended with code {self._process.wait()} at {rows} rows of {model}")
        return Run(*map(float, answer.split()))

    def stop(self) -> None:
        self._process.communicate()  # the end of its input is its own end


def main() -> None:
    models = Path(sys.argv[1])

    @functools.cache
    def loaded(model: str) -> onnxruntime.InferenceSession:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        file = models / f"{model}.onnx"
        return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])

    for line in sys.stdin:
        model, rows, runs = line.split()
        session, feeds = loaded(model), {"x": np.repeat(MODELS[model].sample, int(rows), axis=0)}
        session.run(["y"], feeds)  # servers are asked once, too, before they are measured
        began, cpu = time.monotonic(), time.process_time()
        for _ in range(int(runs)):
            session.run(["y"], feeds)
        took = Run(time.monotonic() - began, time.process_time() - cpu)
        print(*(value / int(runs) for value in took), flush=True)


if __name__ == "__main__":
    main()
