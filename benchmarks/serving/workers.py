"""What a second worker process brings: `--workers 2` beside `--workers 1` on the same cores, in turns.

    python -m benchmarks.serving.workers [--workers 2] [--rounds 5] [--seconds 4]

Needs a core for each worker; the model is one that keeps its core busy (bert_mini), so that the client beside it takes
next to nothing. Every server counts what it answered, whichever worker did; ends with 1 where that is not what the
client got. A machine that does other work meanwhile shows less: there the second core was not to be had.
"""

import argparse
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from statistics import median

from benchmarks.serving import loads, models
from benchmarks.serving.peers.base import Running
from benchmarks.serving.peers.fairlead import Fairlead
from benchmarks.serving.processes import any_core, run_program

_MODEL = models.MODELS["bert_mini"]
_CALLS_PER_WORKER = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=2, help="processes to compare with one (2)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=4, help="of load for each server in each round (4)")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < options.workers:
        sys.exit(f"there are {len(os.sched_getaffinity(0))} cores for {options.workers} workers")
    rates: dict[int, list[float]] = {1: [], options.workers: []}
    with tempfile.TemporaryDirectory(prefix="fairlead-workers-") as name:
        folder = Path(name)
        models.save(_MODEL.name, folder / "models" / f"{_MODEL.name}.onnx")
        running: dict[int, Running] = {}
        try:
            for workers in rates:
                (folder / str(workers)).mkdir()
                fairlead = Fairlead(f"--workers={workers}", cores=any_core(), serves=(_MODEL.name,))
                server = fairlead.start(Path(sys.executable), folder / "models", folder / str(workers))
                running[workers] = server
                server.process.wait_until(server.ready)
            got = dict.fromkeys(rates, 0)
            for _ in range(options.rounds):
                for workers, server in running.items():
                    assert server.http is not None
                    calls = _CALLS_PER_WORKER * options.workers
                    load = loads.wrk(*server.http(_MODEL), calls, options.seconds, folder)
                    rates[workers].append(load.per_s)
                    got[workers] += load.count
                    print(f"{workers} workers {load.per_s:8.1f}/s", flush=True)
            lost = [_lost(server, got[workers], calls * options.rounds) for workers, server in running.items()]
        finally:
            for server in running.values():
                server.process.stop()
    ratio = median(rates[options.workers]) / median(rates[1])
    print(f"{options.workers} workers answer {ratio:.2f} times as many requests a second as one (1.8 is wanted of two)")
    return 1 if any(lost) else 0


def _lost(server: Running, got: int, cut_off: int) -> bool:
    """Return whether a server counts others than its client got; those cut off at a round's end only it knows of."""
    assert server.http is not None
    with urllib.request.urlopen(server.http(_MODEL)[0].replace("/infer", "/stats")) as response:
        (statistics,) = json.load(response)["model_stats"]
    counted = int(statistics["inference_stats"]["success"]["count"])
    equal = got <= counted <= got + cut_off
    print(f"the client got {got} answers, the server counts {counted}{'' if equal else ': these are not the same'}")
    return not equal


if __name__ == "__main__":
    run_program(main)
