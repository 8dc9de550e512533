"""BERT-large's shape in FP16 at sequence 128 and ResNet-50's: the whole server beside the same torch module alone.

    make bench-gpu [DEVICE=cpu] [RECORD=1]

The module is called directly with a batch that lies on the device already; the server gets the same batches from
clients in another process, by HTTP, and answers them. Rounds alternate, medians are told. The target is 95 % of the
module alone. Without a GPU, `--device cpu` tries the script with sizes that say nothing.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

try:
    import torch
except ModuleNotFoundError:
    sys.exit("bench-gpu needs torch, which is not installed; run: pip install 'fairlead[torch]'")

from benchmarks.gpu import models

RECORDED = Path(__file__).with_name("results.json")
TARGET = 0.95
_CLIENTS = 4


def main() -> int:
    options = _options()
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench-gpu needs an NVIDIA GPU, and torch finds none here; --device cpu tries the script without one")
    small = options.device == "cpu"
    torch.set_num_threads(1)  # as many as the server has
    dtype = torch.float32 if small else torch.float16
    found = {}
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-gpu-") as name:
        folder = Path(name)
        for shape in models.SMALL_SHAPES if small else models.SHAPES:
            kind = "KIND_CPU" if small else "KIND_GPU"
            models.save(shape, folder / "models" / shape.name, dtype, options.batch, kind)
        for shape in models.SMALL_SHAPES if small else models.SHAPES:
            found[shape.name] = _measured(shape, folder, dtype, options)
            print(_line(shape.name, found[shape.name]), flush=True)
    results = {"device": _device(options.device), "torch": torch.__version__, "batch": options.batch, "models": found}
    if options.record and not small:
        RECORDED.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results))
    return int(not small and any(one["ratio"] < TARGET for one in found.values()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--batch", type=int, default=32, help="rows of a request, and of a run (32)")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement (20)")
    parser.add_argument("--rounds", type=int, default=5, help="(5)")
    parser.add_argument("--record", action="store_true", help=f"keep the results in {RECORDED.name}")
    return parser.parse_args()


def _measured(shape: models.Shape, folder: Path, dtype: Any, options: argparse.Namespace) -> dict[str, Any]:
    """Return rows per second of the module alone and of the server, and the median of the rounds' ratios."""
    given = shape.rows(options.batch, dtype)
    alone, served = [], []
    for _ in range(options.rounds):
        alone.append(_alone(folder / "models" / shape.name, given, options))
        served.append(_served(shape.name, folder, given, options))
    return {
        "alone_rows_per_s": statistics.median(alone),
        "served_rows_per_s": statistics.median(served),
        "ratio": statistics.median(server / module for server, module in zip(served, alone, strict=True)),
    }


def _alone(model: Path, given: Any, options: argparse.Namespace) -> float:
    program = torch.export.load(str(model / "1" / "model.pt2"))
    if options.device == "cuda":
        from torch.export.passes import move_to_device_pass  # noqa: PLC0415 - not in every torch

        program = move_to_device_pass(program, "cuda:0")
    module = program.module()
    batch = torch.from_numpy(given).to("cuda:0" if options.device == "cuda" else "cpu")
    count = 0
    with torch.inference_mode():
        for _ in range(3):
            module(batch)
        _wait(options.device)
        started = time.perf_counter()
        while time.perf_counter() - started < options.seconds:
            module(batch)
            _wait(options.device)
            count += 1
        elapsed_s = time.perf_counter() - started
    del module, program
    if options.device == "cuda":
        torch.cuda.empty_cache()
    return count * options.batch / elapsed_s


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _served(model: str, folder: Path, given: Any, options: argparse.Namespace) -> float:
    np.save(folder / "given.npy", given)
    ports = folder / "ports.json"
    ports.unlink(missing_ok=True)
    serve = [sys.executable, "-m", "serving_runtime", f"--model-repository={folder / 'models'}", "--http-port=0"]
    serve += [
        "--model-control-mode=explicit",
        f"--load-model={model}",
        "--allow-python-models=true",
        "--allow-grpc=false",
        "--metrics-port=0",
    ]
    serve += ["--http-address=127.0.0.1", f"--port-file={ports}"]
    server = subprocess.Popen(serve)
    try:
        deadline = time.monotonic() + 600
        while not ports.exists():
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the server did not start; run it by hand: {' '.join(serve)}")
            time.sleep(0.05)
        url = f"http://127.0.0.1:{json.loads(ports.read_text())['http']}"
        ask = [sys.executable, "-m", "benchmarks.gpu.client", url, model, str(folder / "given.npy"), str(_CLIENTS)]
        told = subprocess.run([*ask, str(options.seconds)], check=True, capture_output=True, text=True).stdout
    finally:
        server.terminate()
        server.wait(120)
    answered = json.loads(told)
    return float(answered["requests"] * options.batch / answered["seconds"])


def _line(name: str, one: dict[str, Any]) -> str:
    return (
        f"{name}: the module alone {one['alone_rows_per_s']:.0f} rows/s, through the server "
        f"{one['served_rows_per_s']:.0f} rows/s: {one['ratio']:.1%}"
    )


def _device(device: str) -> str:
    return torch.cuda.get_device_name(0) if device == "cuda" else "cpu, sizes that say nothing"


if __name__ == "__main__":
    sys.exit(main())
