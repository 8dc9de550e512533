"""How the time to place models grows with their number: 100,000 models on 2,000 GPUs at the largest.

    python benchmarks/placement.py [--results FILE] [--plot FILE]

With --measured nothing is measured: the plot is drawn from the results that are there.

Each GPU is cut into 2 x 1g.10gb, 1 x 2g.20gb and 1 x 3g.40gb; for each GPU there are fifty models of 0.1 to 3 GiB that
may share a slice. Times are given per model as ratios to the smallest task's: 1 where they grow with the number alone.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import chart

from integrations.clusters.base import Arrangement
from placement.gpu_nodes import room
from placement.mig.geometry import GEOMETRIES
from placement.packing.packing import pack
from placement.slices.slice_types import Demand, Room

GPUS = (125, 250, 500, 1000, 2000)
GPUS_PER_NODE, MODELS_PER_GPU, REPEATS = 8, 50, 3
CUT = {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}


def task(gpus: int) -> tuple[list[Demand], list[Room]]:
    """Return models and slices for so many GPUs."""
    random, geometry = Random(gpus), GEOMETRIES["H100-80GB"]
    rooms = [
        room(geometry, f"node-{number:04}", profile, count * min(GPUS_PER_NODE, gpus - number * GPUS_PER_NODE))
        for number in range(-(-gpus // GPUS_PER_NODE))
        for profile, count in CUT.items()
    ]
    sizes = (random.randint(100 << 20, 3 << 30) for _ in range(gpus * MODELS_PER_GPU))
    return [Demand(f"model-{number:06}", 1, size, shares=True) for number, size in enumerate(sizes)], rooms


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw the seconds that packing takes by the number of models."""
    packed = [row for row in rows if row["arrangement"] == Arrangement.PACK]
    points = [(0.0, 0.0), *((row["models"], row["seconds"]) for row in packed)]
    text = chart.steps(
        points,
        title="Models placed on the slices of GPUs, fifty for each GPU",
        across="models",
        up="seconds",
        highest=math.ceil(max(row["seconds"] for row in packed) / chart.TICKS) * chart.TICKS,
    )
    file.write_text(text, encoding="utf-8")


def measure() -> Iterator[dict[str, Any]]:
    """Yield a line for each task."""
    first: dict[Arrangement, float] = {}
    for gpus in GPUS:
        demands, rooms = task(gpus)
        for arrangement in Arrangement:
            taken_s = []
            for _ in range(REPEATS):
                begun = time.perf_counter()
                found = pack(demands, rooms, arrangement)
                taken_s.append(time.perf_counter() - begun)
            per_model = min(taken_s) / len(demands)
            ratio = per_model / first.setdefault(arrangement, per_model)
            line = {"gpus": gpus, "models": len(demands), "arrangement": arrangement, "placed": len(found.placements)}
            yield line | {"seconds": round(min(taken_s), 3), "per_model_to_smallest": round(ratio, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="append a line of JSON per task")
    parser.add_argument("--plot", type=Path, help="an SVG to draw")
    parser.add_argument("--measured", action="store_true", help="measure nothing, and draw what --results has")
    options = parser.parse_args()
    if options.measured:
        rows = [json.loads(line) for line in options.results.read_text().splitlines()]
    else:
        rows = []
        for line in measure():
            rows.append(line)
            print(json.dumps(line), flush=True)
            if options.results:
                with options.results.open("a") as results:
                    results.write(json.dumps(line) + "\n")
    if options.plot:
        plot(rows, options.plot)


if __name__ == "__main__":
    main()
