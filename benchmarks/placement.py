"""How the time to place models grows with their number: 100,000 models on 2,000 GPUs at the largest.

    python benchmarks/placement.py [--results FILE]

Each GPU is cut into 2 x 1g.10gb, 1 x 2g.20gb and 1 x 3g.40gb; for each GPU there are fifty models of 0.1 to 3 GiB that
may share a slice. Times are given per model as ratios to the smallest task's: 1 where they grow with the number alone.
"""

import argparse
import json
import time
from pathlib import Path
from random import Random

from deployments.placement.geometry import GEOMETRIES
from deployments.placement.nodes import room
from deployments.placement.packing import pack
from deployments.placement.rooms import Demand, Room
from integrations.clusters.base import Arrangement

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, help="append a line of JSON per task")
    options = parser.parse_args()
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
            line |= {"seconds": round(min(taken_s), 3), "per_model_to_smallest": round(ratio, 2)}
            print(json.dumps(line), flush=True)
            if options.results:
                with options.results.open("a") as results:
                    results.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
