"""In how many requests the demo's bad version is caught, and how often a good one is held or failed.

    python benchmarks/detection.py [--runs 50] [--minutes 60] [--results FILE] [--plot FILE]

One `fairlead up` with real runtimes, the gateway and the demo's traffic and policy; rollouts of the bad version (it
fails on about three in ten of the real images) and of a good one take turns. Each is one line of JSON in the results:
a run that was stopped goes on where it was; `--plot` draws what there is, and `--runs 0` does nothing else.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import chart
from installation import ENDED, Installation, installation

from fairlead_cli.client import poll_until
from fairlead_cli.demo.story import POLICY

RATE, HOLD_S, ROLLOUT_S = 150.0, 2, 300.0
BAD, GOOD = "bad", "good"


def roll_out(running: Installation, kind: str) -> dict[str, Any]:
    """Roll a version out and return what came of it."""
    live = running.live()
    good = {running.versions["v1"], running.versions["v2"]} - {live}
    version = running.versions["v3"] if kind == BAD else good.pop()
    begun = running.start(version, POLICY)
    ended = poll_until(
        lambda: running.rollout(begun),
        lambda seen: (
            seen["phase"] == "Paused" or (seen["phase"] in ENDED and seen["weight_actual"] == seen["weight_wanted"])
        ),
        timeout_s=ROLLOUT_S,
        every_s=0.1,
        what="the end of the rollout",
    )
    running.live()
    time.sleep(0.5)  # the traffic's log is written five times a second
    own = [request for request in running.requests() if request.revision == ended["to_revision"]]
    return {
        "kind": kind,
        "phase": ended["phase"],
        "code": ended["reason"]["code"],
        "reason": ended["reason"]["message"],
        "requests": len(own),
        "failed": sum(not request.ok for request in own),
        "seconds": round(
            max((each.ended_at for each in own), default=0.0) - min((each.at for each in own), default=0), 2
        ),
        "step": ended["step_index"] + 1,
        "rate": RATE,
        "at": round(time.time()),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the figures that the documentation names."""
    bad, good = ([row for row in rows if row["kind"] == kind] for kind in (BAD, GOOD))
    caught = sorted(row["requests"] for row in bad if row["phase"] == "Degraded" and row["code"] == "AnalysisFailed")
    promoted = sum(row["phase"] == "Healthy" for row in good)
    failed = sum(row["phase"] == "Degraded" for row in good)
    return {
        "bad": {"rollouts": len(bad), "caught": len(caught), **_spread(caught)},
        "bad_failed_requests": _spread(sorted(row["failed"] for row in bad)),
        "good": {"rollouts": len(good), "promoted": promoted, "failed": failed, "held": len(good) - promoted - failed},
    }


def _spread(values: list[int]) -> dict[str, float]:
    if not values:
        return {}
    return {"median": statistics.median(values), "p90": values[int(0.9 * (len(values) - 1))], "most": values[-1]}


def plot(rows: list[dict[str, Any]], file: Path) -> None:
    """Draw the share of bad rollouts that were over after so many requests of the bad version."""
    caught = sorted(row["requests"] for row in rows if row["kind"] == BAD and row["code"] == "AnalysisFailed")
    bad = sum(row["kind"] == BAD for row in rows)
    points = [(0.0, 0.0)]
    for count, requests in enumerate(caught, start=1):
        points += [(requests, points[-1][1]), (requests, 100 * count / bad)]
    text = chart.steps(
        points,
        title=f"The demo's bad version, {bad} rollouts",
        across="requests that it answered before all traffic was off it",
        up="% of the rollouts caught",
    )
    file.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=50, help="rollouts of each kind (50)")
    parser.add_argument("--minutes", type=float, default=60.0, help="stop after so long (60)")
    parser.add_argument("--results", type=Path, default=Path("detection.jsonl"), help="one line per rollout")
    parser.add_argument("--plot", type=Path, help="an SVG to draw")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.results.read_text().splitlines()] if options.results.exists() else []
    deadline = time.monotonic() + 60 * options.minutes
    if any(sum(row["kind"] == kind for row in rows) < options.runs for kind in (BAD, GOOD)):
        with (
            tempfile.TemporaryDirectory() as folder,
            installation(Path(folder), rate=RATE, hold_s=HOLD_S) as running,
            options.results.open("a", encoding="utf-8") as results,
        ):
            while time.monotonic() < deadline:
                kind = min((BAD, GOOD), key=lambda each: sum(row["kind"] == each for row in rows))
                if sum(row["kind"] == kind for row in rows) >= options.runs:
                    break
                rows.append(roll_out(running, kind))
                results.write(json.dumps(rows[-1]) + "\n")
                results.flush()
                print(f"{len(rows)}: {rows[-1]}", file=sys.stderr, flush=True)
                if rows[-1]["phase"] == "Paused":
                    running.client.post(f"rollouts/{running.story.service()['rollout']['id']}/abort", {})
    if options.plot:
        plot(rows, options.plot)
    print(json.dumps(summary(rows), indent=2))


if __name__ == "__main__":
    main()
