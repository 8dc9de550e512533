"""What a shadow costs clients: their latency while all requests are copied, as a ratio to without.

    python benchmarks/shadow_cost.py [--rounds 10] [--seconds 6] [--results FILE]

One `fairlead up` with real runtimes, the gateway and the demo's traffic. In each round a shadow gets copies of all
requests for some seconds, then none runs for as long; the order changes from round to round, so that what else the
machine does falls on both. The shadow is a process on the same machine: it takes processor time besides.
"""

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from installation import Installation, installation

from fairlead_cli.client import Json, poll_until

POLICY = "benchmark-shadow"
RATE, SETTLE_S, START_S = 150.0, 1.0, 60.0
QUANTILES = (0.5, 0.9, 0.99)


def begin_copying(running: Installation) -> Json:
    """Return the rollout of a shadow that gets copies of all requests by now."""
    begun = running.start(running.versions["v2"], POLICY)
    return poll_until(
        lambda: running.rollout(begun),
        lambda seen: seen["mirror_actual"] == 100,
        timeout_s=START_S,
        every_s=0.1,
        what="the copies",
    )


def end_copying(running: Installation, rollout: Json) -> int:
    """Stop the shadow and return how many copies it got."""
    got = running.rollout(rollout)["analysis_runs"]
    running.client.post(f"rollouts/{rollout['id']}/abort", {})
    running.live()
    return int(got[-1]["requests"]["canary"]) if got else 0


def latencies_ms(running: Installation, seconds: float) -> list[float]:
    """Return the latency of the requests of the next seconds, sorted; raises if one failed."""
    time.sleep(SETTLE_S)
    begin = time.time()
    time.sleep(seconds)
    end = time.time()
    time.sleep(SETTLE_S)
    inside = [request for request in running.requests() if begin <= request.at and request.ended_at <= end]
    assert inside, "no request was sent"
    assert all(request.ok for request in inside), "a request failed"
    return sorted(1000 * (request.ended_at - request.at) for request in inside)


def measure(running: Installation, number: int, seconds: float) -> dict[str, Any]:
    """Return one round."""
    found: dict[str, list[float]] = {}
    copies = 0
    for shadow in ("on", "off") if number % 2 else ("off", "on"):
        rollout = begin_copying(running) if shadow == "on" else None
        found[shadow] = latencies_ms(running, seconds)
        if rollout is not None:
            copies = end_copying(running, rollout)
    return {
        "requests": {shadow: len(each) for shadow, each in found.items()},
        "copies": copies,
        **{
            f"p{100 * part:g}_ms": {shadow: round(quantile(each, part), 3) for shadow, each in found.items()}
            for part in QUANTILES
        },
    }


def quantile(ordered: list[float], part: float) -> float:
    return ordered[max(0, math.ceil(part * len(ordered)) - 1)]


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the ratio on to off of each quantile: the median over the rounds, and the middle half of them."""
    found: dict[str, Any] = {"rounds": len(rows), "requests": sum(sum(row["requests"].values()) for row in rows)}
    for part in QUANTILES:
        name = f"p{100 * part:g}_ms"
        ratios = [row[name]["on"] / row[name]["off"] for row in rows]
        quartiles = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        found[name.replace("_ms", "_ratio")] = [round(each, 2) for each in quartiles]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each half of a round (6)")
    parser.add_argument("--results", type=Path, default=Path("shadow-cost.jsonl"), help="one line per round")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    if len(rows) < options.rounds:
        policy = {
            "name": POLICY,
            "strategy": "shadow",
            "steps": [{"weight": 100, "hold": "1h"}],
            "scaleDownDelay": "0s",
        }
        with (
            tempfile.TemporaryDirectory() as folder,
            installation(Path(folder), rate=RATE, hold_s=2) as running,
            options.results.open("a", encoding="utf-8") as results,
        ):
            running.client.put(f"policies/{POLICY}", policy)
            while len(rows) < options.rounds:
                rows.append(measure(running, len(rows), options.seconds))
                results.write(json.dumps(rows[-1]) + "\n")
                results.flush()
                print(f"{len(rows)}: {rows[-1]}", file=sys.stderr, flush=True)
    print(json.dumps(summary(rows), indent=2))


if __name__ == "__main__":
    main()
