"""Prints the figures of "Right answers" in docs/reference/analysis.md: false alarms, and labels needed.

    python -m benchmarks.analysis.label_figures [--runs 2000]      (with PYTHONPATH=platform)

A rollout has 300 cells of two seconds, 30 labelled requests a second, a tenth of them the canary's.
"""

import argparse
import time
from dataclasses import replace

import numpy as np

from benchmarks.analysis import traffic
from benchmarks.analysis.labels import SCORERS, Labels, Scored, rollouts, uneven

USUAL = Labels()
SITUATIONS = {
    "all labels come": replace(USUAL, due=1.0),
    "a tenth comes too late": USUAL,
    "missing at random, more of the canary's": replace(USUAL, labelled={"canary": (0.3, 0.3), "stable": (0.9, 0.9)}),
    "missing more where right, alike": replace(USUAL, labelled={"canary": (0.5, 1.0), "stable": (0.5, 1.0)}),
    "bursts of one side": replace(USUAL, shares=traffic.bursts_of_one_side),
    "pauses of one side": replace(USUAL, shares=traffic.long_pauses_of_one_side),
    "shared outages": replace(USUAL, shares=traffic.shared_outages),
    "shares that drift": replace(USUAL, shares=traffic.autocorrelated),
    "ten slices": replace(USUAL, slices=10),
    "pairs": replace(USUAL, stable=6.0, paired=0.5),
}
"""At the limit: the canary is worse by exactly what is allowed."""

BROKEN = {
    "right answers of the canary get fewer labels, 0.7": replace(
        USUAL, labelled={"canary": (0.7, 1.0), "stable": (1.0, 1.0)}
    ),
    "right answers of the canary get fewer labels, 0.5": replace(
        USUAL, labelled={"canary": (0.5, 1.0), "stable": (1.0, 1.0)}
    ),
    "right answers of both get fewer labels, 0.5": replace(
        USUAL, labelled={"canary": (0.5, 1.0), "stable": (0.5, 1.0)}
    ),
}
WORSE = (0.3, 0.2, 0.1, 0.05)
SLOW = (("accuracy", 0.05), ("costMatrix", 0.05), ("reward", 0.1))
"""What most rollouts do not find in ten minutes: an hour."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    options = parser.parse_args()
    runs, began = options.runs, time.monotonic()
    for name, scorer in SCORERS.items():
        equal, limit = (rollouts(scorer, USUAL, worse=worse, runs=runs) for worse in (0.0, scorer.limit))
        print(f"{name}: false alarms {_of(equal.failed)} equal, {_of(limit.failed)} at the limit", flush=True)
    for name, labels in SITUATIONS.items():
        for kind in ("accuracy", "absoluteError"):
            if labels.shares is not None and kind != "accuracy":
                continue
            scorer = SCORERS[kind]
            equal, limit = (rollouts(scorer, labels, worse=worse, runs=runs) for worse in (0.0, scorer.limit))
            print(f"{name}, {kind}: {_of(equal.failed)} equal, {_of(limit.failed)} at the limit", flush=True)
    for name, labels in BROKEN.items():
        equal, limit = (rollouts(SCORERS["accuracy"], labels, worse=worse, runs=runs) for worse in (0.0, 0.02))
        print(f"breaks: {name}: {_of(equal.failed)} equal, {_of(limit.failed)} at the limit", flush=True)
    for clips in ("graded", "right or wrong"):
        scorer = Scored(uneven, 0.001, is_graded=clips == "graded")
        least = rollouts(scorer, replace(USUAL, stable=24.0), worse=0.001, runs=runs)
        print(f"a canary's losses all the same, bets for {clips}: {_of(least.failed)} at the limit", flush=True)
    for name in SCORERS:
        print(name, "needs", *(_needed(name, USUAL, worse, runs // 4) for worse in WORSE), sep="; ", flush=True)
    for name, worse in SLOW:
        ends = rollouts(SCORERS[name], USUAL, worse=worse, runs=max(2, runs // 10), cells=1800, measurements=5)
        print(f"{name}, an hour, {worse:g}: {np.median(ends.labels):.0f} ({100 * ends.failed:.0f} %)", flush=True)
    for name in ("accuracy", "absoluteError"):
        pairs = replace(USUAL, stable=6.0, paired=0.5)
        print(f"{name}, pairs", *(_needed(name, pairs, worse, runs // 4) for worse in WORSE), sep="; ", flush=True)
        own = replace(USUAL, stable=6.0)
        print(f"{name}, as few", *(_needed(name, own, worse, runs // 4) for worse in WORSE), sep="; ", flush=True)
    print(f"{time.monotonic() - began:.0f} s")


def _needed(name: str, labels: Labels, worse: float, runs: int) -> str:
    ends = rollouts(SCORERS[name], labels, worse=worse, runs=runs, measurements=5)
    median = np.median(ends.labels)
    return f"{worse:g}: {median:.0f} ({100 * ends.failed:.0f} %)"


def _of(share: float) -> str:
    return f"{100 * share:.2f} %"


if __name__ == "__main__":
    main()
