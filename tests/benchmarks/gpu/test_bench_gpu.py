"""The benchmark for GPUs says in one sentence what it lacks."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_without_torch_or_a_gpu_it_says_so_in_one_sentence() -> None:
    hidden = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, "-m", "benchmarks.gpu"]
    done = subprocess.run(command, cwd=ROOT, env=hidden, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("bench-gpu needs ")
    assert done.stderr.count("\n") == 1
